"""A connector that somebody wants to add, read whole and found fit, or refused with every reason, before a copy."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from headwater import limits
from headwater.catalog.prerequisites import prerequisite_faults, replaced
from headwater.catalog.tree import Survey, survey
from headwater.errors import refuse
from headwater.manifest.declaration import Declaration
from headwater.manifest.faults import Fault, refusal
from headwater.manifest.package import FORMAT, Package, examine_package
from headwater.manifest.reading import examine

_PATH = re.compile(r"_(DIR|PATH|HOME|DB|FILE|FOLDER|ROOT)$")
_SECRET = re.compile(r"(^|_)(TOKEN|PASSWORD|SECRET|PAT|KEY|COOKIE)(_|$)")


@dataclass(frozen=True)
class Offer:
    """What is offered. `manifest` is for a folder that has it elsewhere, `command` for one without a connector.toml.

    `variables` are environment variables that become options, beside those that the manifest names.
    """

    source: Path
    manifest: Path | None = None
    command: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    compatibility: str = ""


@dataclass(frozen=True)
class Fit:
    """An offer that was examined: what it declares, how it is run, and the bytes and files to take over."""

    offer: Offer
    declaration: Declaration
    package: Package
    survey: Survey
    written: dict[str, bytes]


def examine_offer(offer: Offer, known: bytes | None = None) -> Fit:
    """Examine an offer, or raise `invalid_manifest` with every fault. `known` is the connector.toml so far."""
    source = offer.source.resolve()
    if not source.is_dir():
        raise refuse("invalid_input", "There is no such folder.", safe="Nothing was added.")
    offer = replace(offer, source=source)
    faults: list[Fault] = []
    manifest = _read(offer.manifest or source / "manifest.json", "manifest.json", faults)
    declaration, found = examine(manifest) if manifest else (None, [])
    faults += _placed("manifest.json", found)
    document = _package_document(offer, manifest, known, faults)
    package, found = examine_package(document) if document else (Package(()), [])
    faults += _placed("connector.toml", found)
    faults += _program_faults(source, package)
    faults += prerequisite_faults(source, package)
    files = survey(source, replaced(source))
    faults += _placed("files", files.faults)
    if faults or declaration is None:
        raise refusal("invalid_manifest", "The connector is refused; nothing was added.", faults)
    return Fit(offer, declaration, package, files, {"manifest.json": manifest, "connector.toml": document})


def _package_document(offer: Offer, manifest: bytes, known: bytes | None, faults: list[Fault]) -> bytes:
    path = offer.source / "connector.toml"
    wanted = offer.command or offer.variables or offer.compatibility
    if path.exists() and wanted:
        faults.append(Fault("connector.toml", "present", "is in the folder and says all this already"))
    elif wanted and not offer.command:
        faults.append(Fault("connector.toml", "required", "is made only where a command follows after --"))
    elif offer.command:
        return _made(offer, manifest)
    elif known is not None and not path.exists():
        return known
    return _read(path, "connector.toml", faults, "is missing; give the command that runs the connector after --")


def _made(offer: Offer, manifest: bytes) -> bytes:
    """Write a connector.toml for a connector that has only its manifest."""
    import tomlkit

    root = _object(manifest)
    named = dict.fromkeys((*_variables_of(root.get("runtime_requirements")), *offer.variables))
    secret = [name for name in named if _SECRET.search(name)]
    options = {name: name.lower() for name in named if name not in secret}
    members: dict[str, Any] = {"format": FORMAT, "command": list(offer.command)}
    members["description"] = str(root.get("display_name", ""))
    members |= {"environment": secret} if secret else {}
    members |= {"compatibility": offer.compatibility} if offer.compatibility else {}
    rules = {option: _rule(name) for name, option in options.items()}
    members |= {"variables": options, "options": {"type": "object", "properties": rules}}
    return tomlkit.dumps(members).encode()


def _rule(variable: str) -> dict[str, str]:
    form = {"format": "path"} if _PATH.search(variable) else {}
    return {"type": "string", **form, "description": f"Given to the program as {variable}."}


def _variables_of(requirements: Any) -> Iterator[str]:
    """Yield the variables that a manifest of the reference implementation names, where it names some."""
    requirements = requirements if isinstance(requirements, dict) else {}
    local = requirements.get("local_paths")
    local = local if isinstance(local, dict) else {}
    paths = local.get("paths")
    rows = [row.get("env_override") for row in paths if isinstance(row, dict)] if isinstance(paths, list) else []
    named = requirements.get("environment_variables")
    everything = [*(named if isinstance(named, list) else []), local.get("home_env_override"), *rows]
    yield from (name for name in everything if isinstance(name, str) and name)


def _program_faults(source: Path, package: Package) -> Iterator[Fault]:
    if not package.command or package.command[0] == "python":
        return
    name = package.command[0]
    if name.partition("/")[0] in replaced(source):
        return
    if "/" in name and not os.access(source / name, os.X_OK):
        yield Fault("connector.toml/command/0", "program", "is no program that may be run")
    elif "/" not in name and shutil.which(name) is None:
        yield Fault("connector.toml/command/0", "program", "is not in PATH")


def _placed(document: str, faults: Iterable[Fault]) -> list[Fault]:
    return [msgspec.structs.replace(fault, pointer=f"{document}{fault.pointer}") for fault in faults]


def _object(document: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(document, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _read(path: Path, name: str, faults: list[Fault], words: str = "cannot be read") -> bytes:
    try:
        if path.is_file():
            with path.open("rb") as file:
                return file.read(limits.MANIFEST_BYTES + 1)
    except OSError:
        words = "cannot be read"
    faults.append(Fault(name, "required", words))
    return b""
