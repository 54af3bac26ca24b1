"""The envelope: what stands where, and what happens where it cannot be written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import click
import pytest

from headwater.cli.main import root
from headwater.cli.output import Misshapen, Output
from headwater.cli.shapes import SHAPES, fits
from headwater.codes import NextAction
from headwater.errors import refuse

HEADWATER = [sys.executable, "-m", "headwater"]


def leaves(command: click.Command, path: str = "") -> "list[tuple[str, click.Command]]":
    if not isinstance(command, click.Group):
        return [(path, command)]
    context, found = click.Context(command), []
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        found += leaves(below, f"{path} {name}".strip())
    return found


LEAVES = leaves(root)


def run(*words: str, **given: Any) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([*HEADWATER, *words], capture_output=True, timeout=60, **given)


@pytest.mark.clause("CLI-001", "CLI-044", "CLI-005")
def test_a_result_is_one_line_of_json_and_a_table_for_people(typist: Any) -> None:
    """stdout is the envelope and a newline, with nothing beside it; the honest empty answer is a success."""
    typed = typist.type("--output", "json", "runs", "list")
    assert (typed.status, typed.stderr, typed.stdout.count("\n")) == (0, "", 1)
    assert list(json.loads(typed.stdout)) == ["ok", "result"]
    assert typist.type("runs", "list").stdout.startswith("run  ")
    assert (
        typist.type("--output", "json", "runs", "list", "nobody/here").stdout == '{"ok":true,"result":{"items":[]}}\n'
    )


@pytest.mark.clause("CLI-015")
@pytest.mark.parametrize(
    "words",
    [
        ["nonsuch", "--output", "json"],
        ["--output", "json", "nonsuch"],
        ["runs", "--output=json", "nonsuch", "--help"],
        ["help", "nonsuch", "--output=json"],
        ["runs", "list", "--nonsuch", "--output", "json"],
        ["--output", "json", "runs", "list", "--limit"],
        ["--output", "json", "runs", "list", "--output", "human"],
        ["runs", "list", "--output", "json", "--state-dir"],
    ],
)
def test_a_program_gets_its_envelope_wherever_it_asks_for_it(typist: Any, words: list[str]) -> None:
    """Also where the rest of the line makes no sense, or asks for help with it."""
    typed = typist.type("--bare", *words)
    assert (typed.status, typed.envelope) == (2, {"ok": False, "error": {"code": "cli_parse", "data": {}}})


@pytest.mark.clause("CLI-016")
@pytest.mark.parametrize(
    "words",
    [
        ["runs", "list", "--limit", "3", "--limit", "3"],
        ["records", "list", "demo/me", "messages", "--since", "2026-01-01", "--since=2026-01-02"],
        ["--state-dir", "/nowhere", "runs", "list"],
        ["collect", "schedule", "set", "demo/me", "--every", "1h", "--every", "2h"],
    ],
)
def test_two_values_for_one_option_are_refused(typist: Any, words: list[str]) -> None:
    """Which of them would count, nobody could say."""
    assert typist.type("--output", "json", *words).envelope["error"] == {"code": "cli_parse", "data": {}}
    assert "An option is given twice." in typist.type(*words).stderr


def test_an_option_that_may_be_repeated_may_be_repeated(typist: Any) -> None:
    """The rule is for options with one value."""
    assert typist.type("records", "list", "demo/me", "messages", "--where", "a=1", "--where", "b=2").status == 0


@pytest.mark.clause("CLI-017", "CLI-045")
@pytest.mark.parametrize(
    "words",
    [
        ["runs", "list", "--limit", "abc"],
        ["runs", "list", "--limit", "0"],
        ["runs", "list", "--status", "odd"],
        ["rejections", "show", "9999999999999999999999x"],
        ["completions", "tcsh"],
    ],
)
def test_a_value_that_is_not_of_its_type_is_cli_input(typist: Any, words: list[str]) -> None:
    """A program can tell it from a line that does not parse."""
    typed = typist.type("--output", "json", *words)
    assert (typed.status, typed.envelope["error"]) == (2, {"code": "cli_input", "data": {}})


@pytest.mark.clause("CLI-017")
@pytest.mark.parametrize("words", [["--output", "xml", "runs", "list"], ["--state-dir", "", "--output=json"]])
def test_a_global_option_is_held_to_its_type(words: list[str]) -> None:
    """An empty path is not the usual path, and an unknown output is none."""
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"does not fit" in done.stderr or b"cli_input" in done.stderr


@pytest.mark.clause("CLI-011", "CLI-017")
def test_words_that_are_no_text_are_refused() -> None:
    """Bytes that no encoding explains reach no database and no message."""
    done = run("--output", "json", "runs", "show", os.fsdecode(b"\xff\xfe"))
    assert json.loads(done.stderr)["error"] == {"code": "cli_input", "data": {}}


@pytest.mark.clause("CLI-018")
def test_a_source_without_a_refusal_of_its_own_is_cli_source(capsysbinary: Any) -> None:
    """Whoever reads a source refuses it by name; where nobody does, it is told so."""
    status = Output("json").misuse(click.FileError("s3nt1nel", "s3nt1nel"))
    assert (status, json.loads(capsysbinary.readouterr().err)) == (
        2,
        {"ok": False, "error": {"code": "cli_source", "data": {}}},
    )


@pytest.mark.clause("CLI-020")
def test_a_reader_refuses_its_own_source(typist: Any) -> None:
    """An unreadable file is the application's refusal, and not the parser's."""
    typed = typist.type("--output", "json", "connectors", "validate", "/s3nt1nel")
    assert (typed.status, typed.envelope["error"]["data"]["code"]) == (2, "invalid_input")
    assert "s3nt1nel" not in typed.stderr


@pytest.mark.clause("CLI-014", "CLI-045")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_the_script_itself(typist: Any, shell: str) -> None:
    """Whatever --output says: a shell reads it."""
    typed = typist.type("--output", "json", "completions", shell)
    assert (typed.status, typed.stderr) == (0, "")
    assert "_HEADWATER_COMPLETE" in typed.stdout
    assert typed.stdout == typist.type("completions", shell).stdout


@pytest.mark.clause("CLI-014")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """The script asks the command line itself, so both know the same words."""
    asked = {"_HEADWATER_COMPLETE": "bash_complete", "COMP_CWORD": "2", "HOME": str(tmp_path)}
    done = run(env={**asked, "COMP_WORDS": "headwater runs un"})
    assert done.stdout == b"plain,undo\n"
    done = run(env={**asked, "COMP_WORDS": "headwater runs list --sta", "COMP_CWORD": "3"})
    assert b"--status" in done.stdout


@pytest.mark.clause("CLI-027", "CLI-029")
@pytest.mark.parametrize(("path", "leaf"), LEAVES, ids=[path for path, _ in LEAVES])
def test_help_lists_the_flags_that_are_parsed(typist: Any, path: str, leaf: click.Command) -> None:
    """Help and the parser never disagree, and the summary of a command is there."""
    typed = typist.type(*path.split(), "--help")
    assert (typed.status, typed.stderr) == (0, "")
    shown = {word.strip(",") for word in typed.stdout.split() if word.startswith("--")}
    flags = {flag for one in leaf.params if isinstance(one, click.Option) and not one.hidden for flag in one.opts}
    assert flags - shown == set()


@pytest.mark.clause("CLI-027")
def test_every_group_and_command_has_a_summary(typist: Any) -> None:
    """The tree of help says of each group and each command what it is for."""
    groups = [name for name in root.list_commands(click.Context(root)) if typist.type(name, "--help").status == 0]
    told = typist.type("--help").stdout
    assert [name for name in groups if f"  {name}" not in told] == []
    assert [path for path, leaf in LEAVES if not leaf.get_short_help_str()] == []


@pytest.mark.clause("CLI-031")
def test_no_command_takes_the_global_options_as_its_own() -> None:
    """Where things are kept and how they are printed is no input of a command."""
    taken = {f"--{name}" for name in ("config", "state-dir", "output")}
    assert [path for path, leaf in LEAVES if any(taken & set(one.opts) for one in leaf.params)] == []


@pytest.mark.clause("CLI-032")
def test_setup_check_takes_no_word(typist: Any) -> None:
    """It looks at everything there is."""
    assert typist.type("--output", "json", "setup", "check", "extra").envelope["error"]["code"] == "cli_parse"


@pytest.mark.clause("CLI-010", "CLI-001")
def test_progress_is_for_people(typist: Any) -> None:
    """A program that collects reads nothing on stderr."""
    where = ["--config", f"{typist.place}/config.toml", "--state-dir", f"{typist.place}/state"]
    done = run(*where, "--output", "json", "demo")
    assert (done.returncode, done.stderr) == (0, b"")
    assert typist.told != b""


@pytest.mark.clause("CLI-013", "CLI-028")
def test_an_old_word_is_told_once_and_not_in_help(typist: Any) -> None:
    """In a line before all others, or in the envelope; help under an old path says nothing on stderr."""
    assert typist.type("adapters", "describe", "nobody/here").stderr.startswith(
        "deprecated: adapters describe; use instances describe\nheadwater: "
    )
    told = typist.type("--output", "json", "adapters", "describe", "nobody/here").envelope
    entry = {"command": "adapters describe", "replacement": ["instances describe"]}
    assert (list(told), told["deprecations"]) == (["ok", "error", "deprecations"], [entry])
    assert typist.type("adapters", "describe", "--help").stderr == ""
    assert "deprecat" not in typist.type("--output", "json", "instances", "describe", "nobody/here").stderr


# Results are held to their shape.


def test_a_shape_holds_members_types_and_lists() -> None:
    """Each way in which a result can be wrong is seen."""
    run_ = {"run_id": "r", "status": "cancelling"}
    assert fits("runs cancel", run_)
    assert not fits("runs cancel", {**run_, "more": 1})
    assert not fits("runs cancel", {"run_id": "r"})
    assert not fits("runs cancel", {**run_, "status": None})
    assert not fits("runs cancel", [run_])
    undone = {"undone": "r", "streams": [], "cursors": [], "dry_run": True}
    assert fits("runs undo", undone)
    assert fits("runs undo", {**undone, "run_id": "r"})
    assert not fits("runs undo", {**undone, "run_id": None})
    assert not fits("runs undo", {**undone, "dry_run": 1})
    assert not fits("runs undo", {**undone, "streams": [{"stream": "s", "restored": True, "removed": 0}]})
    assert fits("a command that is not there", object())


@pytest.mark.clause("CLI-033", "CLI-035")
@pytest.mark.parametrize("mode", ["human", "json"])
def test_a_misshapen_result_reaches_nobody(typist: Any, mode: str) -> None:
    """It is an internal error, and what the command had made is not on stdout."""
    code = (
        "import sys\nfrom headwater.cli.main import main\nfrom headwater.store.sqlite.reading import Reader\n"
        "Reader.runs = lambda *_: {'items': [{'run_id': 's3nt1nel'}]}\nmain(sys.argv[1:])"
    )
    where = ["--config", f"{typist.place}/config.toml", "--state-dir", f"{typist.place}/state"]
    words = [sys.executable, "-c", code, *where, "--output", mode, "runs", "list"]
    done = subprocess.run(words, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"s3nt1nel" not in done.stderr
    if mode == "json":
        assert json.loads(done.stderr) == {"ok": False, "error": {"code": "cli_internal", "data": {}}}
    notes = sorted((typist.place / "state" / "crashes").iterdir())
    assert Misshapen.__qualname__ in notes[-1].read_text()


def test_every_command_declares_what_it_prints() -> None:
    """But for those that print a script, or nothing of their own."""
    silent = {"completions", "owner", "connections launch"}
    printing = {path for path, _ in LEAVES if not path.startswith("adapters ")}
    assert sorted(printing - SHAPES.keys() - silent) == []


@pytest.mark.clause("CLI-009")
def test_a_person_is_told_the_next_step_that_a_program_is(typist: Any) -> None:
    """An instance without a connection: the next step is to connect it, in either mode."""
    config = typist.place / "config.toml"
    made = typist.type("setup", "init").status
    config.write_text(f"{config.read_text()}\n[connectors.github.instances.work]\n")
    words = ["connections", "describe", "github/work"]
    assert typist.type("--output", "json", *words).envelope["error"]["data"]["next_action"] == "create_connection"
    assert "connections connect" in typist.type(*words).stderr
    config.unlink()
    assert made == 0


@pytest.mark.clause("CLI-009")
@pytest.mark.parametrize("action", sorted(set(get_args(NextAction)) - {"none"}))
def test_each_next_action_has_words(action: str, capsysbinary: Any) -> None:
    """A failure that names no command says all the same what to do."""
    Output("human").failure(refuse("not_found", next_action=action))  # type: ignore[arg-type]
    assert b"\n  Next: " in capsysbinary.readouterr().err


@pytest.mark.clause("CLI-903")
def test_a_database_that_is_none_is_unavailable(tmp_path: Path) -> None:
    """Looking neither repairs it nor fails inside."""
    (tmp_path / "headwater.db").write_bytes(b"s3nt1nel" * 1000)
    done = run("--state-dir", str(tmp_path), "--config", str(tmp_path / "c"), "--output", "json", "runs", "list")
    data = json.loads(done.stderr)["error"]["data"]
    assert (done.returncode, data["code"], data["stage"]) == (1, "metadata_unavailable", "observation")
    assert data["next_action"] == "retry_status"
    assert b"s3nt1nel" not in done.stderr


# Where it cannot be written.


@pytest.mark.clause("CLI-038")
@pytest.mark.parametrize("mode", ["human", "json"])
def test_a_full_disk_or_a_closed_stdout_ends_with_1(typist: Any, mode: str) -> None:
    """Nothing is a traceback, and nothing says that it went well."""
    where = ["--config", f"{typist.place}/config.toml", "--state-dir", f"{typist.place}/state", "--output", mode]
    for to in (">/dev/full", ">&-", "| true"):
        words = f'"$0" -m headwater {" ".join(where)} records list demo/me messages --limit 1000'
        done = subprocess.run(["bash", "-o", "pipefail", "-c", f"{words} {to}", sys.executable], capture_output=True)
        assert done.returncode == 1, (to, done)
        assert b"Traceback" not in done.stderr
        assert b"Exception" not in done.stderr
        if mode == "json":
            assert json.loads(done.stderr)["error"] == {"code": "cli_internal", "data": {}}
        else:
            assert done.stderr == (
                b"" if to == "| true" else b"headwater: The result cannot be written. What was done is done.\n"
            )


def test_without_stderr_the_exit_still_tells() -> None:
    """Nobody can be told what failed, but the status is as ever."""
    script = '"$0" -m headwater nonsuch 2>&-'
    assert subprocess.run(["bash", "-c", script, sys.executable], capture_output=True).returncode == 2


@pytest.mark.clause("CLI-001")
def test_json_is_utf_8_whatever_the_locale() -> None:
    """A program need not know in which locale the command ran."""
    code = (
        "from headwater.cli.output import Output\nfrom headwater.errors import refuse\noutput = Output('json')\n"
        "output.result('\\u00fc', list)\noutput.failure(refuse('not_found', '\\u00fc'))"
    )
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert json.loads(done.stdout.decode("utf-8"))["result"] == "\u00fc"
    assert json.loads(done.stderr.decode("utf-8"))["error"]["data"]["message"] == "\u00fc"


@pytest.mark.clause("CLI-008", "CLI-914", "CLI-002")
def test_an_interrupt_is_130_and_one_envelope(tmp_path: Path) -> None:
    """Ctrl-C while a server waits ends it at once, and says so in the one line."""
    where = ["--config", str(tmp_path / "c.toml"), "--state-dir", str(tmp_path / "s")]
    words = [*HEADWATER, *where, "--output", "json", "collect", "schedule", "run"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (tmp_path / "s" / "locks" / "scheduler.lock").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    data = json.loads(err)["error"]["data"]
    assert (data["kind"], data["code"], data["stage"]) == ("interrupted", "interrupted", "admission")
