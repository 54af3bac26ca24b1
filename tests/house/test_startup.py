"""Looking starts quickly: what it does not need is not imported.

No times are measured here, for a busy machine would fail them; `docs/performance.md` has the times.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each of these costs a tenth of a bare interpreter, or much more.
HEAVY = [
    "asyncio",
    "concurrent",
    "cryptography",
    "difflib",
    "headwater.collect.runs",
    "headwater.connect.ports",
    "headwater.process",
    "headwater.sdk",
    "headwater.server",
    "headwater.vault",
    "headwater.outbound",
    "http",
    "httpx2",
    "importlib.metadata",
    "jsonschema_rs",
    "logging",
    "multiprocessing",
    "rich",
    "shutil",
    "ssl",
    "starlette",
    "subprocess",
    "tempfile",
    "tomlkit",
    "traceback",
    "urllib.request",
    "uvicorn",
    "zoneinfo",
]
LOOKING = (
    "runs list",
    "runs show",
    "runs explain",
    "streams list",
    "records list demo/me messages",
    "gaps list",
    "inbox list",
    "rejections list",
    "state show demo/me",
    "instances list",
    "list",
    "instances describe github/work",
    "connections list github/work",
    "connections status github/work --connection x",
    "connectors list",
)
PROBE = """
import sys
from headwater.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(*sys.modules, sep=chr(10), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Headwater with a configuration and an empty database."""
    folder = tmp_path_factory.mktemp("looking")
    where = ["--config", f"{folder}/own/config.toml", "--state-dir", f"{folder}/state"]
    (folder / "own").mkdir(mode=0o700)
    subprocess.run([sys.executable, "-m", "headwater", *where, "setup", "init"], check=True, capture_output=True)
    with (folder / "own" / "config.toml").open("a") as file:
        file.write("\n[connectors.github.instances.work]\n")
    return folder


def heavy(place: Path, *words: str) -> set[str]:
    """Return the heavy modules that a command imports."""
    where = ["--config", f"{place}/own/config.toml", "--state-dir", f"{place}/state", "--output", "json"]
    done = subprocess.run([sys.executable, "-c", PROBE, *where, *words], capture_output=True, text=True, timeout=60)
    assert "cli_internal" not in done.stderr
    assert "cli_parse" not in done.stderr
    modules = done.stderr.splitlines()
    return {name for name in HEAVY if any(one == name or one.startswith(f"{name}.") for one in modules)}


@pytest.mark.parametrize("command", LOOKING)
def test_looking_imports_nothing_heavy(place, command):
    """No event loop, no schema library, no child processes and no HTTP, for rows of a table."""
    assert heavy(place, *command.split()) == set()


def test_help_imports_no_command(place):
    """Help prints a table, as wide as the terminal is."""
    assert heavy(place, "--help") <= {"shutil"}
