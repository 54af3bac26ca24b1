"""Which Python packages a connector names, held to what can be installed without running anything of it.

`pip` would build whatever is a folder, an archive or an address, and a requirements file may change how it works. So a
requirement is a name with versions, and of the options only those are taken that say where wheels come from.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from headwater.manifest.faults import Fault

FILE = "requirements.txt"
PROJECT = "pyproject.toml"

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"(?!.*\s-)({_NAME})\s*(?:\[[A-Za-z0-9._, -]*\])?\s*(?:$|[<>=!~;(])[^@$/\\]*")
_ARCHIVE = re.compile(r"\.(zip|whl|tar|tgz|tbz|txz|tlz|gz|bz2|xz|lzma)$", re.IGNORECASE)
_HASH = re.compile(r"\s--hash[= ]\S+")
_OPTION = re.compile(r"--no-index|--require-hashes|(-i|-f|--index-url|--extra-index-url|--find-links)[= ].+")


def requirement_faults(folder: Path) -> Iterator[Fault]:
    """Yield what a folder asks of `pip` that is not taken."""
    try:
        named, lines = _project_dependencies(folder), _lines(folder)
    except (OSError, ValueError):
        yield Fault("", "unreadable", "the requirements cannot be read")
        return
    yield from (Fault(PROJECT, "requirement", _WORDS) for item in named if not _fits(item))
    for number, line in lines:
        if "${" in line or not (_fits(_HASH.sub("", line)) or _OPTION.fullmatch(line)):
            yield Fault(f"{FILE}/{number}", "requirement", _WORDS)


_WORDS = "is not a package by its name and version"


def wanted(folder: Path) -> list[str]:
    """Return what to tell `pip` to install, nothing where the folder asks for nothing."""
    if (folder / FILE).is_file():
        hashed = any(_HASH.search(line) for _, line in _lines(folder))
        return ["--requirement", FILE, *(["--require-hashes"] if hashed else [])]
    return _project_dependencies(folder)


def _fits(text: str) -> bool:
    match = _REQUIREMENT.fullmatch(text.strip())
    return match is not None and not _ARCHIVE.search(match[1])


def _lines(folder: Path) -> Iterator[tuple[int, str]]:
    """Yield each line that says something, with its number: comments left out, continued lines joined."""
    path = folder / FILE
    text = path.read_text("utf-8") if path.is_file() else ""
    whole, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first if whole else number
        whole += re.sub(r"(^|\s)#.*$", "", line)
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        if whole.strip():
            yield first, whole.strip()
        whole = ""
    if whole.strip():
        yield first, whole.strip()


def _project_dependencies(folder: Path) -> list[str]:
    """Return the dependencies that a `pyproject.toml` names. Raise ValueError where it cannot be read."""
    path = folder / PROJECT
    project = tomllib.loads(path.read_text("utf-8")).get("project", {}) if path.is_file() else {}
    named = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        raise ValueError("dependencies is not a list of texts")
    return named
