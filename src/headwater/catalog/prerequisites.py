"""What a connector stands on: Python packages in an environment of its own, Node packages in its own folder.

Nothing of a connector or of a package runs while it is installed: Python packages are taken as wheels, and Node's
install scripts are left out.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

import headwater
from headwater import limits
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
    faults = []
    if _needs_python(folder, package) and isinstance(_dependencies(folder), str):
        faults.append(Fault("pyproject.toml", "toml", str(_dependencies(folder))))
    if _node_dependencies(folder) and not _is_locked(folder) and not (folder / NODE_MODULES).is_dir():
        faults.append(Fault("package.json", "lock", "has dependencies and no package-lock.json beside it"))
    if _is_locked(folder) and shutil.which("npm") is None:
        faults.append(Fault("package.json", "program", "needs npm, which is not in PATH"))
    return faults


def replaced(folder: Path) -> tuple[str, ...]:
    """Return the entries of a connector's folder that are not copied, since installing makes them anew."""
    return (NODE_MODULES,) if _is_locked(folder) else ()


def install(folder: Path, package: Package, tell: Callable[[str], None]) -> tuple[str, ...]:
    """Install the packages of a connector into its folder; return the entries made, or raise `install_failed`."""
    built = []
    if _needs_python(folder, package):
        tell("Python packages, into an environment of its own")
        _install_python(folder)
        built.append(ENVIRONMENT)
    if _is_locked(folder):
        tell("Node packages, from the lock file")
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        built.append(NODE_MODULES)
    return tuple(built)


def _install_python(folder: Path) -> None:
    _run([sys.executable, "-m", "venv", ENVIRONMENT], folder)
    _share_the_sdk(folder / ENVIRONMENT)
    wanted = ["--requirement", "requirements.txt"] if (folder / "requirements.txt").is_file() else _dependencies(folder)
    hashed = ["--require-hashes"] if _has_hashes(folder) else []
    pip = [str(own_python(folder)), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    _run([*pip, "--only-binary", ":all:", *hashed, *wanted], folder)


def _share_the_sdk(environment: Path) -> None:
    """Let the environment see what we stand on, behind its own packages: `headwater.sdk` works there too."""
    (library,) = environment.glob("lib/python*/site-packages")
    ours = {str(Path(module.__file__ or "").parents[1]): None for module in (headwater, msgspec)}
    (library / "headwater.pth").write_text("".join(f"{path}\n" for path in ours), encoding="utf-8")


def _needs_python(folder: Path, package: Package) -> bool:
    if not package.command or package.command[0] != "python":
        return False
    return (folder / "requirements.txt").is_file() or bool(_dependencies(folder))


def _dependencies(folder: Path) -> list[str] | str:
    """Return the dependencies that a `pyproject.toml` names, or what is wrong with it."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8")).get("project", {})
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return "is not valid TOML"
    named = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(named, list) or not all(isinstance(item, str) and item[:1].isalnum() for item in named):
        return "has dependencies that are not a list of names"
    return named


def _has_hashes(folder: Path) -> bool:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return "--hash=" in (folder / "requirements.txt").read_text("utf-8")
    return False


def _node_dependencies(folder: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        document = json.loads((folder / "package.json").read_text("utf-8"))
        return isinstance(document, dict) and bool(document.get("dependencies"))
    return False


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
