"""On a system that is not Linux: what is there is shown, and every command that needs a guarantee is refused.

No such system is needed for this: the real command line starts in a process that takes itself for one.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headwater import guarantees
from headwater.cli.main import root
from headwater.cli.systems import ANYWHERE

ELSEWHERE = """
import sys
sys.platform = sys.argv.pop(1)
from headwater.cli.main import main
main()
"""

EVERY_OTHER = """
import json, sys
sys.platform = sys.argv.pop(1)
import click
from headwater.cli.main import root
from headwater.cli.output import Output
from headwater.cli.session import Cli
from headwater.errors import HeadwaterError
codes = {}
for path in json.loads(sys.argv.pop(1)):
    command, context = root, click.Context(root, info_name="headwater", obj=Cli(Output("json"), "/none/c", "/none/s"))
    words = path.split(" ")
    while isinstance(command, click.Group):
        name, command, words = command.resolve_command(context, words)
        context = click.Context(command, info_name=name, parent=context)
    try:
        with context:
            context.params = {one.name: False if getattr(one, "is_flag", False) else None for one in command.params}
            command.invoke(context)
    except HeadwaterError as error:
        codes[path] = [error.code, error.stage, error.next_action]
    except Exception as error:
        codes[path] = repr(error)
print(json.dumps(codes))
"""
FOREIGN = pytest.mark.parametrize("system", ["darwin", "freebsd14"])


def commands(command: click.Command, path: str = "") -> list[str]:
    """Return the whole path of every command that does something."""
    if not isinstance(command, click.Group):
        return [path]
    names = command.list_commands(click.Context(command))
    return [one for name in names for one in commands(command.get_command(None, name), f"{path} {name}".strip())]


def typed(place: Path, system: str, *words: str) -> subprocess.CompletedProcess:
    """Type a command where the system is said to be this one."""
    where = ["--config", str(place / "c" / "config.toml"), "--state-dir", str(place / "s"), "--output", "json"]
    line = [sys.executable, "-c", ELSEWHERE, system, *where, *words]
    environment = {"HOME": str(place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.clause("CLI-964")
@FOREIGN
@pytest.mark.parametrize(
    "words",
    [
        ["connections", "connect", "github/me"],
        ["collect", "git/here"],
        ["invoke", "github/me", "user.show", "--input-json", "{}"],
        ["setup", "init"],
        ["serve", "--port", "0"],
        ["collect", "schedule", "run"],
        ["demo"],
    ],
    ids=" ".join,
)
def test_what_needs_a_guarantee_is_refused_and_leaves_nothing(tmp_path, system, words):
    ended = typed(tmp_path, system, *words)
    assert (ended.returncode, ended.stdout) == (1, "")
    failure = json.loads(ended.stderr)["error"]["data"]
    assert [failure[name] for name in ("code", "stage", "next_action")] == ["unsupported", "admission", "none"]
    assert system in failure["message"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("CLI-964")
@FOREIGN
def test_the_connectors_the_help_and_the_completions_are_shown_as_on_linux(tmp_path, system):
    for words in (["list"], ["--help"], ["collect", "--help"], ["completions", "bash"], ["connectors", "show", "git"]):
        there, here = typed(tmp_path, system, *words), typed(tmp_path, "linux", *words)
        assert (there.returncode, there.stderr) == (0, "")
        assert there.stdout == here.stdout != ""
    assert json.loads(typed(tmp_path, system, "list").stdout)["result"]["connectors"]


@pytest.mark.clause("CLI-964")
def test_what_is_stored_can_be_looked_at_anywhere(tmp_path):
    """A database that was brought along, from a demonstration on Linux."""
    assert typed(tmp_path, "linux", "demo").returncode == 0
    for words in (["runs", "list"], ["streams", "list", "demo/me"], ["instances", "list"], ["gaps", "list"]):
        there, here = typed(tmp_path, "freebsd14", *words), typed(tmp_path, "linux", *words)
        assert (there.returncode, there.stdout) == (0, here.stdout)
    assert typed(tmp_path, "freebsd14", "demo").returncode == 1


@pytest.mark.clause("CLI-964")
def test_a_line_that_does_not_fit_is_told_first(tmp_path):
    ended = typed(tmp_path, "darwin", "collect", "git/here", "--bogus")
    assert (ended.returncode, json.loads(ended.stderr)["error"]["code"]) == (2, "cli_parse")


@pytest.mark.clause("CLI-964")
def test_every_command_that_is_not_known_to_only_look_is_refused():
    """A new one is, too, until it is listed; and everything that is listed is a command."""
    every = set(commands(root))
    assert every >= ANYWHERE
    others = sorted(every - ANYWHERE)
    line = [sys.executable, "-c", EVERY_OTHER, "freebsd14", json.dumps(others)]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert json.loads(ended.stdout) == {path: ["unsupported", "admission", "none"] for path in others}


@pytest.mark.clause("CLI-950")
def test_a_check_of_the_machine_tells_how_far_each_guarantee_holds(tmp_path):
    """Seven on Linux, each by its name; none where nothing was tried."""
    assert set(guarantees.LINUX) == {
        "sealed_executable",
        "parent_death_kill",
        "exact_process_signal",
        "own_image_build_measure",
        "atomic_no_replace_rename",
        "atomic_close_on_exec",
        "peer_credential_snapshot",
    }

    def row(system: str) -> dict[str, str]:
        rows = json.loads(typed(tmp_path, system, "setup", "check").stdout)["result"]["prerequisites"]
        return next(one for one in rows if one["name"] == "guarantees")

    weaker = {name: form for name, form in guarantees.LINUX.items() if form != guarantees.HOLDS}
    here, there = row("linux"), row("freebsd14")
    assert here["state"] == "ready"
    assert here["detail"].startswith(f"{7 - len(weaker)} of 7 of the system hold")
    assert all(f"{name} ({form})" in here["detail"] for name, form in weaker.items())
    assert there["state"] == "failed"
    assert "hold" not in there["detail"]


def test_without_a_way_to_tie_a_child_to_its_parent_that_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert guarantees.held()["parent_death_kill"] == "input_closed"


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "platforms.md"


@pytest.mark.clause("CLI-950", "CLI-963")
def test_the_page_states_each_guarantee_and_claims_none_where_no_test_ran():
    rows = re.findall(r"^\| `(\w+)` \| `?(\w+)`? \| (\w+) \| (\w+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: linux for name, linux, *_ in rows} == guarantees.LINUX
    assert {word for _, _, *others in rows for word in others} == {"unverified"}


@pytest.mark.clause("CLI-963")
@FOREIGN
def test_nothing_is_told_to_hold_where_no_test_ran(system):
    told = "import sys; sys.platform = sys.argv[1]; from headwater import guarantees; print(dict(guarantees.held()))"
    ended = subprocess.run([sys.executable, "-c", told, system], capture_output=True, text=True)
    assert ended.stdout.strip() == "{}"
