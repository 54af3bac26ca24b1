"""The files that every child needs: the system's programs and libraries, a few of its tables, and our interpreter."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import headwater

SYSTEM: Final = tuple(
    Path(name)
    for name in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
)
_TABLES = """
    alternatives ca-certificates ca-certificates.conf crypto-policies fonts gai.conf group host.conf hostname hosts
    ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime mime.types nsswitch.conf os-release passwd
    pki protocols resolv.conf services ssl terminfo timezone
"""
TABLES: Final = tuple(Path("/etc", name) for name in _TABLES.split())


def interpreter_paths() -> Iterator[Path]:
    """Yield where our Python lies, its environment, and the folder that this package is imported from."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(headwater.__file__).parents[1])


def program_paths(program: Path, home: Path) -> Iterator[Path]:
    """Yield a program and the folder that it was installed into, as `…/node-22` of `…/node-22/bin/node`."""
    for path in dict.fromkeys((program, program.resolve())):
        yield path
        prefix = path.parents[1] if path.parent.name == "bin" else path
        if not is_wide(prefix, home) and prefix != home / ".local":
            yield prefix


def is_wide(folder: Path, home: Path) -> bool:
    """Whether a folder holds more than one thing of its owner's: the home, one above it, or one for everybody."""
    return home.is_relative_to(folder) or folder in (Path("/tmp"), Path("/var/tmp"), Path("/home"), Path("/root"))  # noqa: S108


def exists(path: Path) -> bool:
    """Whether there is such a path; a word that cannot be one names none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
