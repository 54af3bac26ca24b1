"""What a connector stands on: Python packages in an environment of its own, Node packages in its own folder.

Nothing of a connector or of a package runs while it is installed: Python packages are taken as wheels, by interpreters
that see no file of the connector's, and Node's install scripts are left out.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import headwater
from headwater import limits
from headwater.catalog.requirements import requirement_faults, wanted
from headwater.errors import refuse
from headwater.manifest.faults import Fault
from headwater.manifest.package import Package

ENVIRONMENT = ".venv"
NODE_MODULES = "node_modules"
_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
_ALLOWED = ("PATH", "HOME", "USER", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME")
_ALLOWED_PREFIXES = ("LC_", "PIP_", "NPM_CONFIG_", "npm_config_", "http", "HTTP", "no_proxy", "NO_PROXY", "NODE_EXTRA")
_USERINFO = re.compile(r"//[^/@\s]+@")


def own_python(folder: Path) -> Path | None:
    """Return the interpreter of a connector's own environment, None where it has none."""
    python = folder / ENVIRONMENT / "bin" / "python"
    return python if python.exists() else None


def prerequisite_faults(folder: Path, package: Package) -> list[Fault]:
    """Return what keeps the packages of a connector from being installed."""
    faults = list(requirement_faults(folder)) if _runs_on_python(package) else []
    if _node_dependencies(folder) and not _is_locked(folder) and not (folder / NODE_MODULES).is_dir():
        faults.append(Fault("package.json", "lock", "has dependencies and no package-lock.json beside it"))
    if _is_locked(folder) and _takes_from_git(folder):
        faults.append(Fault("package-lock.json", "git", "takes a package from git, which would run its scripts"))
    if _is_locked(folder) and shutil.which("npm") is None:
        faults.append(Fault("package.json", "program", "needs npm, which is not in PATH"))
    return faults


def replaced(folder: Path) -> tuple[str, ...]:
    """Return the entries of a connector's folder that are not copied, since installing makes them anew."""
    return (NODE_MODULES,) if _is_locked(folder) else ()


def install(folder: Path, package: Package, tell: Callable[[str], None]) -> tuple[str, ...]:
    """Install the packages of a connector into its folder; return the entries made, or raise `install_failed`."""
    built = []
    if _runs_on_python(package) and (packages := wanted(folder)):
        tell("Python packages, into an environment of its own")
        _install_python(folder, packages)
        built.append(ENVIRONMENT)
    if _is_locked(folder):
        tell("Node packages, from the lock file")
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        built.append(NODE_MODULES)
    return tuple(built)


def _install_python(folder: Path, packages: Sequence[str]) -> None:
    _run([sys.executable, "-I", "-m", "venv", str(folder / ENVIRONMENT)], folder.parent)
    _share_the_sdk(folder / ENVIRONMENT)
    pip = [str(own_python(folder)), "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    _run([*pip, "--only-binary", ":all:", *packages], folder)


def _share_the_sdk(environment: Path) -> None:
    """Let the environment see what we stand on, behind its own packages: `headwater.sdk` works there too."""
    (library,) = environment.glob("lib/python*/site-packages")
    ours = {str(Path(module.__file__ or "").parents[1]): None for module in (headwater, msgspec)}
    (library / "headwater.pth").write_text("".join(f"{path}\n" for path in ours), encoding="utf-8")


def _runs_on_python(package: Package) -> bool:
    return package.command[:1] == ("python",)


def _node_dependencies(folder: Path) -> bool:
    return bool(_json(folder / "package.json").get("dependencies"))


def _takes_from_git(folder: Path) -> bool:
    packages = [_json(folder / name).get("packages") for name in _LOCKS]
    rows = [row for named in packages if isinstance(named, dict) for row in named.values() if isinstance(row, dict)]
    return any(str(row.get("resolved", "")).startswith("git") for row in rows)


def _json(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return {}


def _is_locked(folder: Path) -> bool:
    return (folder / "package.json").is_file() and any((folder / name).is_file() for name in _LOCKS)


def _run(words: Sequence[str], folder: Path) -> None:
    """Run an installer in a process group of its own, under a deadline; raise with the end of what it said."""
    environment = {k: v for k, v in os.environ.items() if k in _ALLOWED or k.startswith(_ALLOWED_PREFIXES)}
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=limits.INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            said = b"It took too long."
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        lines = _USERINFO.sub("//", said.decode("utf-8", "replace")).strip().splitlines()
        message = f"{Path(words[0]).name} could not install the connector's packages."
        raise refuse("install_failed", message, safe="Nothing was added or changed.", explanation=lines[-12:])
