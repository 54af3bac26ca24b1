"""The command line's own rules: where global options stand, and how a misuse is answered."""

import json
import subprocess
import sys

import pytest

from headwater.cli.main import COMMANDS, take_globals


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "headwater", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.clause("CLI-050")
@pytest.mark.parametrize(
    "words",
    [
        ["--output", "json", "runs", "list"],
        ["runs", "list", "--output", "json"],
        ["runs", "--output=json", "list"],
    ],
)
def test_global_options_stand_anywhere(words):
    """Before, between or after the command words, a global option is the same."""
    assert take_globals(words) == (["runs", "list"], {"--output": ["json"]})


def test_nothing_is_taken_from_behind_the_double_dash():
    """What follows `--` is the connector's command line, and not ours."""
    words = ["collect", "--", "tool", "--output", "json"]
    assert take_globals(words) == (words, {})


@pytest.mark.clause("CLI-015", "CLI-016", "CLI-004")
@pytest.mark.parametrize("words", [["nonsuch"], ["runs", "list", "--nonsuch"], ["runs", "nonsuch"], ["records", "get"]])
def test_what_does_not_parse_is_cli_parse_with_empty_data(words):
    """A parse refusal is told apart from a failure by its data alone, and repeats nothing."""
    result = run(*words, "--output", "json")
    assert result.returncode == 2
    assert result.stdout == ""
    assert json.loads(result.stderr) == {"ok": False, "error": {"code": "cli_parse", "data": {}}}


@pytest.mark.clause("CLI-017")
def test_a_value_of_the_wrong_type_is_cli_input(tmp_path):
    """A value that does not decode is another refusal than a word that does not parse."""
    result = run("runs", "list", "--limit", "abc", "--output", "json")
    assert result.returncode == 2
    assert json.loads(result.stderr)["error"]["code"] == "cli_input"


@pytest.mark.clause("CLI-011")
@pytest.mark.parametrize(
    "words", [["s3ntinel"], ["runs", "list", "--s3ntinel"], ["runs", "list", "--limit", "s3ntinel"]]
)
@pytest.mark.parametrize("mode", ["human", "json"])
def test_no_refusal_repeats_what_was_typed(words, mode):
    """A word typed in the wrong place may be a secret."""
    result = run(*words, "--output", mode)
    assert "s3ntinel" not in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.clause("CLI-039")
def test_version_is_one_line():
    """--version prints the name and the version."""
    assert run("--version").stdout == "headwater 0.1.0\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_its_exit_statuses(command):
    """Help works for every command, and each leaf names its exit statuses."""
    import click

    from headwater.cli.main import root

    found = root.get_command(click.Context(root), command)
    leaves = found.commands.values() if isinstance(found, click.Group) else [found]
    assert [leaf.name for leaf in leaves if "Exit status" not in (leaf.help or "")] == []


@pytest.mark.clause("CLI-055")
def test_with_both_paths_given_no_variable_is_needed(tmp_path):
    """An empty environment is enough where the paths are given."""
    where = ["--config", str(tmp_path / "c.toml"), "--state-dir", str(tmp_path / "s")]
    words = [sys.executable, "-m", "headwater", *where, "instances", "list"]
    result = subprocess.run(words, env={}, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.clause("CLI-056")
def test_without_any_path_the_refusal_names_the_rule():
    """Nothing is searched for in the working directory."""
    words = [sys.executable, "-m", "headwater", "instances", "list", "--output", "json"]
    result = subprocess.run(words, env={}, capture_output=True, text=True, timeout=60)
    data = json.loads(result.stderr)["error"]["data"]
    assert result.returncode == 2
    assert (data["code"], data["configuration_rule"]) == ("invalid_configuration", "config_path_unresolved")


@pytest.mark.clause("CLI-038")
def test_a_closed_pipe_is_no_traceback(tmp_path):
    """A reader that leaves early costs nobody a traceback."""
    command = f"{sys.executable} -m headwater --help | true"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in result.stderr
