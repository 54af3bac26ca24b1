"""The `headwater` command: the group, the global options, and the one place where failures become exits."""

import os
import sys
from collections.abc import Sequence
from typing import Never

import click

from headwater.cli.lazy import LazyGroup
from headwater.cli.output import Output
from headwater.cli.session import Cli
from headwater.errors import HeadwaterError, is_exhausted, refuse

COMMANDS = {
    "demo": ("demo:demo", "See the main job in a minute, with nothing configured."),
    "collect": ("collect:collect", "Collect now: an instance, or any program that speaks the profile."),
    "collect schedule": ("schedule:schedule", "Collect on a schedule: set when, and run the scheduler."),
    "streams": ("streams:streams", "What has been collected, stream by stream."),
    "records": ("records:records", "Look at records: list, search, get, history, export."),
    "runs": ("runs:runs", "What committed, what was withheld, and why."),
    "inbox": ("inbox:inbox", "Questions that connectors wait for."),
    "gaps": ("gaps:gaps", "Details that are known to be missing."),
    "rejections": ("rejections:rejections", "Records that were refused, with their bytes."),
    "state": ("state:state", "The committed cursors of an instance."),
    "serve": ("serve:serve", "Let programs on this machine read and put cursors, over HTTP."),
    "instances": ("instances:instances", "Set up what is collected, without running it."),
    "setup": ("setup:setup", "What this machine has for Headwater to stand on."),
    "connectors": ("connectors:connectors", "What can be run; make one; check one; add one."),
}

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
    output = Output(globals_.get("--output", "human"))
    try:
        if output.mode not in ("human", "json"):
            raise click.BadParameter("", param_hint="--output")
        status = run(words, Cli(output, globals_.get("--config"), globals_.get("--state-dir")))
    except click.ClickException as error:
        status = output.misuse(error)
    except HeadwaterError as error:
        status = output.failure(error)
    except (KeyboardInterrupt, click.Abort):
        status = output.failure(refuse("interrupted"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except (OSError, RuntimeError) as error:
        status = output.failure(refuse("machine_exhausted")) if is_exhausted(error) else output.internal()
    except Exception:  # noqa: BLE001 - the one place that keeps a traceback from a person
        status = output.internal()
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


def take_globals(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Take the global options out of the arguments, wherever they stand before `--`."""
    words: list[str] = []
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*words, word, *rest], found
        if name not in ("--config", "--state-dir", "--output"):
            words.append(word)
        elif equals:
            found[name] = value
        elif rest:
            found[name] = rest.pop(0)
        else:
            words.append(word)
    return words, found
