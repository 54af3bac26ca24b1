"""`headwater invoke`: ask a service one thing, or for page after page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from headwater.cli.document import document
from headwater.cli.options import Options, misfit, options_of
from headwater.cli.output import pairs
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.cli.defined import Asking
    from headwater.joining.operating import Aimed

_ON: Final[dict[str, Any]] = {"is_flag": False, "flag_value": True, "default": False, "type": bool}


@click.command()
@click.argument("words", nargs=-1, metavar="<connector>[/<instance>] OPERATION")
@click.option("--connection", "reference", metavar="REF", help="The connection, where the instance holds several.")
@click.option("--schema", metavar="DIGEST", help="Ask only if the operation's schema is still this one.")
@click.option("--revision", metavar="DIGEST", help="Ask only if the description is still this one.")
@click.option("--input-json", metavar="JSON", help="What the operation is given.")
@click.option("--input-file", metavar="PATH", help="Read it from a file.")
@click.option("--input-stdin", is_flag=True, help="Read it from stdin: so too without any of the three.")
@click.option("--deadline-ms", type=int, metavar="N", help="How long it may take (default 30000, at most 120000).")
@click.option("--fields", metavar="PATHS", help="Print these members alone, as in id,state:status,labels[].name.")
@click.option("--each", metavar="PATH", help="Print a line for each element of this array.")
@click.option("--walk", **_ON, help="Ask for page after page, and write their records.")
@click.option("--out", metavar="PATH", help="The new file for the records of a walk; - is stdout.")
@click.option("--max-pages", metavar="N", help="How many pages a walk asks for (default 20, at most 10000).")
@click.option("--definition", metavar="FILE", help="Ask by this definition, which no configuration names.")
@click.option(
    "--definitions-root", metavar="DIR", help="Where definitions share files (default: above the FILE's folder)."
)
@click.option("--credential-file", metavar="PATH", help="The credential for it, if it has to be connected first.")
@click.option("--approval-file", metavar="PATH", help="The approval of a write.")
@click.option("--approve", **_ON, help="Show the write, ask at the terminal, and do it once that is answered with yes.")
@click.option("--idempotency-key", metavar="KEY", help="What makes a write the same one when it is asked again.")
@click.option("--describe", **_ON, help="Show the operation, and ask nothing.")
@pass_cli
def invoke(cli: Cli, /, words: tuple[str, ...], **asked: Any) -> None:
    """Ask the service of an instance one thing, and print what it answers.

    Exit status: 0 answered, or a walk ended or stopped; 1 refused or failed; 2 what was typed or given does not fit;
    130 interrupted.
    """
    options = options_of(asked)
    by_file = None if asked["definition"] is None else _by_file(cli, words, asked)
    aimed = _aimed(cli, words, asked) if by_file is None else by_file.aimed()
    if asked["describe"]:
        cli.output.result(told := aimed.describe(), lambda: _described(told), "describe")
        return
    _check_effect(aimed, asked)
    given = document(asked["input_json"], asked["input_file"], stdin=asked["input_stdin"])
    aimed.check(given)
    connect = partial(by_file.connect, aimed) if by_file is not None else None
    if aimed.described.operation.effect == "write":
        from headwater.cli.writing import write

        _tell(cli, write(cli, aimed, given, (options, asked), connect), options)
        return
    if options.pages is not None:
        from headwater.cli.walking import walk

        walk(cli, aimed, given, options, connect)
        return
    if connect is not None:
        connect()
    _tell(cli, _asked(cli, aimed, given, options), options)


def _by_file(cli: Cli, words: Sequence[str], asked: Mapping[str, Any]) -> Asking:
    from headwater.cli.defined import Asking, check_stdin

    check_stdin(asked)
    return Asking(cli, words, asked)


def _aimed(cli: Cli, words: Sequence[str], asked: Mapping[str, Any]) -> Aimed:
    if len(words) != 2:
        raise misfit("target", "Name an instance and an operation: headwater invoke github/me user.show.")
    name, operation = words
    pins = (asked["schema"], asked["revision"])
    return cli.host.operating.aimed(name, operation, pins, reference=asked["reference"])


def _check_effect(aimed: Aimed, asked: Mapping[str, Any]) -> None:
    """Refuse what does not go with a read or with a write, then a write without an approval (CLI-574, CLI-575)."""
    from headwater.operate.admission import admit_read

    operation = aimed.described.operation
    is_read = operation.effect == "read"
    for name in ("approval_file", "approve", "idempotency_key") if is_read else ("each", "walk"):
        if asked[name] not in (None, False):
            raise misfit(name, f"--{name.replace('_', '-')} is not for an operation that {operation.effect}s.")
    if not asked["approve"] and asked["approval_file"] is None:
        admit_read(aimed.described, aimed.target.name)
    if asked["walk"] and operation.walk is None:
        message = "The operation declares no pages to walk."
        raise refuse("unsupported", message, safe="Nothing was sent.", field="walk")


def _asked(cli: Cli, aimed: Aimed, given: Any, options: Options) -> dict[str, Any]:
    from headwater.cli.ending import run

    async def ask() -> dict[str, Any]:
        async with cli.host.operating.reading(aimed, options.reference) as reads:
            return await reads.read(given, options.seconds)

    return run(ask())


def _tell(cli: Cli, answer: dict[str, Any], options: Options) -> None:
    from headwater.operate.shaping import listed, shaped

    if options.each is not None:
        found = listed(answer, options.each, options.fields)
        cli.output.lines(found.lines)
        cli.output.result(found.result, lambda: cli.output.indented(found.result), "each")
    elif options.fields is not None:
        told = shaped(answer, options.fields)
        cli.output.result(told, lambda: cli.output.indented(told), "fields")
    else:
        cli.output.result(answer, lambda: cli.output.indented(answer["result"]))
    if "mutation" in answer:
        cli.output.note(_became(answer["mutation"]))


def _became(mutation: Mapping[str, Any]) -> str:
    how = "told again: nothing was sent now" if mutation["replayed"] else "sent once"
    return f"{mutation['classification']} ({how})"


def _described(told: Mapping[str, Any]) -> list[str]:
    from headwater.cli.operations import taken

    shown = {name: value for name, value in told.items() if name != "input_schema"}
    return [*pairs(shown), *taken(told["input_schema"])]
