"""`headwater collect`: run a connector now."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from headwater import limits
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse
from headwater.joining.programs import CollectRequest, Program

if TYPE_CHECKING:
    from headwater.wire.messages import CollectionScope


@dataclass(frozen=True)
class CollectOptions:
    """What was typed."""

    words: tuple[str, ...]
    manifest: Path | None
    settings: tuple[str, ...]
    folder: Path | None
    stream: tuple[str, ...]
    scope: Path | None
    mode: Literal["incremental", "full_refresh"] | None
    answer_file: Path | None
    inbox: bool
    idle_timeout: float
    time_limit: float


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("words", nargs=-1, metavar="<connector>/<instance> | -- CMD [ARG]...")
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE", help="Set an option; it is remembered.")
@click.option("--from", "folder", type=click.Path(path_type=Path), help="The connector's folder, for one of your own.")
@click.option("--manifest", type=click.Path(path_type=Path), help="A manifest; the program to run follows after --.")
@click.option("--stream", multiple=True, metavar="NAME", help="Only this stream; may be repeated.")
@click.option("--scope", type=click.Path(path_type=Path), help='A file with START\'s {"streams":[...]}.')
@click.option("--mode", type=click.Choice(["incremental", "full_refresh"]), help="Incremental unless you say so.")
@click.option(
    "--answer-file", type=click.Path(path_type=Path), help='Answers, in order: {"answers":[{"kind","data"}]}.'
)
@click.option("--inbox", is_flag=True, help="Let questions wait for `headwater inbox answer`.")
@click.option("--idle-timeout", type=click.FloatRange(0.1), default=limits.IDLE_SECONDS, help="Seconds of silence.")
@click.option("--time-limit", type=click.FloatRange(0.1), default=limits.RUN_SECONDS, help="Seconds for the whole run.")
@pass_cli
def collect(cli: Cli, /, **typed: Any) -> None:
    """Collect now: new and changed records are stored, and cursors commit only for what is proven.

    \b
    headwater collect git/here --set path=.
    headwater collect --manifest M.json -- ./my-connector

    Exit status: 0 succeeded, 1 the run failed, 2 the manifest, scope or options do not fit, 130 interrupted.
    """
    cli.host.expect_to_collect()
    from headwater.cli.answers import AnswerFile, Terminal
    from headwater.cli.running import report, run
    from headwater.collect.runs import Deadlines

    options = CollectOptions(**typed)
    program = _program(cli, options)
    respondent = AnswerFile(options.answer_file) if options.answer_file is not None else Terminal.here()
    inbox = options.inbox or (options.answer_file is None and respondent is not None)
    request = CollectRequest(
        program,
        scope=_scope(options.scope),
        streams=options.stream,
        mode=options.mode,
        deadlines=Deadlines(options.idle_timeout, options.time_limit),
    )
    outcome = run(cli.host, cli.output, request, respondent, inbox=inbox)
    report(cli.output, outcome, f"{program.connector}/{program.instance}")


def _program(cli: Cli, options: CollectOptions) -> Program:
    if options.manifest is not None:
        if not options.words or options.settings or options.folder:
            raise click.UsageError("")
        return cli.host.program_of(_bytes(options.manifest, limits.MANIFEST_BYTES), options.words)
    if len(options.words) != 1:
        raise click.UsageError("")
    instance = cli.host.set_up(options.words[0], options.settings, options.folder)
    return cli.host.program(instance)


def _scope(path: Path | None) -> "CollectionScope | None":
    if path is None:
        return None
    import msgspec

    from headwater.wire.messages import CollectionScope

    try:
        return msgspec.json.decode(_bytes(path, limits.DOCUMENT_BYTES), type=CollectionScope)
    except msgspec.DecodeError as error:
        message = 'The scope file is not {"streams":[{"name","fields?","time_range?","resources?"}]}.'
        raise refuse("invalid_scope", message, safe="Nothing was started.") from error


def _bytes(path: Path, bound: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(bound + 1)
    except OSError as error:
        raise refuse("invalid_input", "A file that was named cannot be read.", safe="Nothing was started.") from error
