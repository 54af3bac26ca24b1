"""A definition that stands alone: the operations of a service, where it is, and how a person signs in to it.

Beside what every definition has (`manifest/definition.py`) it names its connector, a base URL whose variables have
defaults, and the ways to sign in. A way to sign in may be in a file of its own, shared by several definitions.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from headwater.manifest.auth import Method
from headwater.manifest.auth_methods import read_methods
from headwater.manifest.definition import Definition, document_of, read_operations
from headwater.manifest.endpoints import is_reachable
from headwater.manifest.faults import Fault, Reader

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MEMBERS: Final = frozenset({"id", "catalog", "base_url", "variables", "auth", "default_profile"})
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLE_MEMBERS: Final = frozenset({"default", "description"})
_SHARED: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*\.(?:toml|json)")

Shared = Callable[[str], bytes | None]
"""Reads a file by its path below the definitions' root; None where there is none that can be read."""


class ProviderDefinition(Struct, frozen=True):
    """A service: its connector's id, where it is, how to sign in (in order, one by default), what it can be asked.

    `root` is the whole document, with what it shares put in its place.
    """

    id: str
    base_url: str
    methods: Mapping[str, Method]
    profile: str
    operations: Definition
    root: Mapping[str, Any]


def examine_provider(
    text: bytes, stem: str, *, toml: bool, shared: Shared = lambda _: None
) -> tuple[ProviderDefinition | None, list[Fault]]:
    """Read a definition file and return it, or None and the faults. `stem` is its connector where it names none."""
    root, faults = document_of(text, toml=toml)
    if faults:
        return None, faults
    reader = Reader()
    found = _provider(reader, root, stem, shared)
    return (None, reader.faults) if reader.faults else (found, [])


def _provider(reader: Reader, root: dict[str, Any], stem: str, shared: Shared) -> ProviderDefinition:
    if not NAME.fullmatch(stem):
        reader.fault("stem", "must be in a file whose name is letters, digits, - and _")
    named = {
        member: reader.shaped(root, member, NAME, "must be letters, digits, - and _")
        for member in ("id", "catalog")
        if member in root
    }
    auth = _put_in_place(reader, root, shared)
    methods = read_methods(reader, {"auth": auth} if auth is not None else {})
    for index, method in enumerate(methods.values()):
        if method.scheme == "hooks":
            with reader.at("auth", "methods", index, "scheme"):
                reader.fault("required", "must say how the credential is sent: there is no code here")
    profile = reader.choice(root, "default_profile", tuple(methods)) or next(iter(methods), "")
    return ProviderDefinition(
        id=named.get("id") or stem,
        base_url=_base_url(reader, root),
        methods=methods,
        profile=profile,
        operations=read_operations(reader, root, _MEMBERS),
        root={**root, "auth": auth},
    )


def _put_in_place(reader: Reader, root: dict[str, Any], shared: Shared) -> dict[str, Any] | None:
    """Return the table `auth` with each `use = PATH` replaced by the method of that file."""
    auth = root.get("auth")
    if not isinstance(auth, dict) or not isinstance(auth.get("methods"), list):
        return auth
    rows = []
    for index, row in enumerate(auth["methods"]):
        is_shared = isinstance(row, dict) and "use" in row
        with reader.at("auth", "methods", index):
            rows.append(_shared_method(reader, row, shared) if is_shared else row)
    return {**auth, "methods": rows}


def _shared_method(reader: Reader, row: dict[str, Any], shared: Shared) -> dict[str, Any]:
    reader.no_others(row, frozenset({"use"}))
    path = reader.text(row, "use") or ""
    with reader.at("use"):
        text = shared(path) if _SHARED.fullmatch(path) else None
        if text is None:
            reader.fault("shared", "must be a file below the definitions' root that can be read")
            return {}
        method, faults = document_of(text, toml=path.endswith(".toml"))
        if faults:
            reader.fault("shared", "is a file that cannot be read as what its name says")
    return method


def _base_url(reader: Reader, root: dict[str, Any]) -> str:
    """Return the base URL with the defaults of its variables in their places (CLI-1058)."""
    url = reader.text(root, "base_url", required=True) or ""
    variables = reader.table(root, "variables")
    with reader.at("variables"):
        defaults = {name: _default(reader, name, reader.table(variables, name)) for name in variables}
    used = _VARIABLE.findall(url)
    for name in sorted(set(variables) - set(used)):
        with reader.at("variables", name):
            reader.fault("unused", "stands nowhere in base_url")
    for name in used:
        url = url.replace(f"{{{name}}}", defaults.get(name, ""))
    with reader.at("base_url"):
        if not set(used) <= variables.keys():
            reader.fault("variable", "has a variable without a default")
        elif url and not is_reachable(url):
            reader.fault("url", "must be https, or http at a loopback address, without user, query or fragment")
    return url


def _default(reader: Reader, name: str, row: dict[str, Any]) -> str:
    with reader.at(name):
        reader.no_others(row, _VARIABLE_MEMBERS)
        return reader.text(row, "default", required=True) or ""
