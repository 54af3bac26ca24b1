"""The `headwater` command: the group, the global options, and the one place where failures become exits."""

import gc
import os
import resource
import signal
import sys
from collections.abc import Sequence
from typing import Final, Never

import click

from headwater.cli.lazy import LazyGroup
from headwater.cli.output import GivenTwice, Output, Unwritten
from headwater.cli.session import Cli
from headwater.errors import HeadwaterError, is_exhausted, refuse

# Starting makes many objects and no garbage: looking for some time and again would take a tenth of a short command.
gc.set_threshold(50_000)

COMMANDS = {
    "demo": ("demo:demo", "See the main job in a minute, with nothing configured."),
    "collect": ("collect:collect", "Collect now: an instance, or any program that speaks the profile."),
    "collect schedule": ("schedule:schedule", "Collect on a schedule: set when, and run the scheduler."),
    "operations": ("operations:operations", "What can be asked of the services that are connected."),
    "invoke": ("invoke:invoke", "Ask a service one thing: an operation of an instance."),
    "approvals": ("approvals:approvals", "What may be written at a service, and the approval of one write."),
    "streams": ("streams:streams", "What has been collected, stream by stream."),
    "records": ("records:records", "Look at records: list, search, get, history, export."),
    "runs": ("runs:runs", "What committed, what was withheld, and why."),
    "inbox": ("inbox:inbox", "Questions that connectors wait for."),
    "gaps": ("gaps:gaps", "Details that are known to be missing."),
    "rejections": ("rejections:rejections", "Records that were refused, with their bytes."),
    "state": ("state:state", "The committed cursors of an instance."),
    "serve": ("serve:serve", "Let programs on this machine do what the command line does, over HTTP."),
    "instances": ("instances:instances", "Set up what is collected, without running it."),
    "setup": ("setup:setup", "Make the configuration; see what this machine has for Headwater to stand on."),
    "list": ("listing:list_", "The connectors that can be connected and collected, with your instances."),
    "owner": ("owner:owner", "Be the owner of the state directory: run the schedules, keep adapters ready."),
    "adapters": ("instances:adapters", "The old name of instances (deprecated)."),
    "connections": ("connections:connections", "Accounts, connected once to the instances that need them."),
    "connectors": ("connectors:connectors", "What can be run; make one; check one; add one."),
    "definitions": ("definitions:definitions", "Releases of definitions: install one, and use it."),
    "completions": ("completions:completions", "Print what a shell needs to complete commands."),
}

GLOBALS: Final = ("--config", "--state-dir", "--output")

EPILOG = """\b
Global options, before or after any command:
  --config PATH        the configuration file
  --state-dir PATH     where the database and the bytes are kept
  --output human|json  tables for people, or one JSON object

\b
Exit status: 0 done, 1 it failed, 2 what you typed or a file you named does not fit, 130 interrupted."""


@click.group(
    cls=LazyGroup,
    commands_table=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="headwater", prog_name="headwater", message="%(prog)s %(version)s")
def root() -> None:
    """Collect your data from the services you use into a database you own."""


def main(arguments: Sequence[str] | None = None) -> Never:
    """Run the command line and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    words, globals_ = take_globals(given)
    cli = Cli(Output(_mode(globals_)), *(globals_.get(name, [None])[0] for name in ("--config", "--state-dir")))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a command may hold a credential or an answer: no core file does
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # inherited: no child would tell how it ended
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _check(given, globals_)
        status = run(words, cli)
    except click.ClickException as error:
        status = cli.output.misuse(error)
    except HeadwaterError as error:
        status = cli.output.failure(error)
    except (KeyboardInterrupt, click.Abort):
        status = cli.output.failure(refuse("interrupted"))
    except (Unwritten, BrokenPipeError) as error:
        status = _unwritten(cli.output, error)
    except (OSError, RuntimeError) as error:
        exhausted = is_exhausted(error)
        status = cli.output.failure(refuse("machine_exhausted")) if exhausted else _crashed(cli, error)
    except Exception as error:  # noqa: BLE001 - the one place that keeps a traceback from a person
        status = _crashed(cli, error)
    gc.freeze()  # what is left is let go with the process, not object by object
    sys.exit(status)


def run(words: Sequence[str], cli: Cli) -> int:
    """Run one command in this process; failures are raised."""
    try:
        result = root.main(list(words), prog_name="headwater", standalone_mode=False, obj=cli)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def take_globals(arguments: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Take the global options out of the arguments, wherever they stand before `--`, with what is given for each."""
    words: list[str] = []
    found: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*words, word, *rest], found
        if name not in GLOBALS:
            words.append(word)
        elif equals:
            found.setdefault(name, []).append(value)
        elif rest:
            found.setdefault(name, []).append(rest.pop(0))
        else:
            words.append(word)
    return words, found


def _mode(globals_: dict[str, list[str]]) -> str:
    """Choose how to answer, a refusal of the command line included: to a program wherever it asks for it (CLI-015)."""
    return "json" if "json" in globals_.get("--output", []) else "human"


def _check(given: Sequence[str], globals_: dict[str, list[str]]) -> None:
    """Refuse what no command could be given: a global option twice, or text that is none."""
    if any(len(values) > 1 for values in globals_.values()):
        raise GivenTwice("")
    for name, (value,) in globals_.items():
        if not value or (name == "--output" and value not in ("human", "json")):
            raise click.BadParameter("", param_hint=name)
    try:
        "".join(given).encode()
    except UnicodeEncodeError:
        raise click.BadParameter("", param_hint="an argument") from None


def _unwritten(output: Output, error: Exception) -> int:
    """End where the result cannot be written; a person who closed the pipe knows that it is closed (CLI-038)."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if output.is_json:
        return output.internal(None)
    if not isinstance(error.__cause__ or error, BrokenPipeError):
        output.note("headwater: The result cannot be written. What was done is done.")
    return 1


def _crashed(cli: Cli, error: Exception) -> int:
    return cli.output.internal(cli.note_crash(error))
