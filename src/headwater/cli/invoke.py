"""`headwater invoke`: ask a service one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headwater import limits
from headwater.cli.document import document
from headwater.cli.output import pairs
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.joining.operating import Aimed


@click.command()
@click.argument("words", nargs=-1, metavar="<connector>[/<instance>] OPERATION")
@click.option("--connection", "reference", metavar="REF", help="The connection, where the instance holds several.")
@click.option("--schema", metavar="DIGEST", help="Ask only if the operation's schema is still this one.")
@click.option("--revision", metavar="DIGEST", help="Ask only if the description is still this one.")
@click.option("--input-json", "text", metavar="JSON", help="What the operation is given.")
@click.option("--input-file", "path", metavar="PATH", help="Read it from a file.")
@click.option("--input-stdin", "stdin", is_flag=True, help="Read it from stdin: so too without any of the three.")
@click.option("--deadline-ms", type=int, metavar="N", help="How long it may take (default 30000, at most 120000).")
@click.option("--approval-file", metavar="PATH", help="The approval of a write.")
@click.option("--idempotency-key", metavar="KEY", help="What makes a write the same one when it is asked again.")
@click.option("--describe", is_flag=False, flag_value=True, default=False, type=bool, help="Show it, and ask nothing.")
@pass_cli
def invoke(cli: Cli, /, words: tuple[str, ...], **asked: Any) -> None:
    """Ask the service of an instance one thing, and print what it answers.

    Exit status: 0 answered, 1 refused or failed, 2 what was typed or given does not fit, 130 interrupted.
    """
    if len(words) != 2:
        raise refuse(
            "invalid_input", "Name an instance and an operation: headwater invoke github/me user.show.", field="target"
        )
    aimed = cli.host.operating.aimed(*words, schema=asked["schema"], revision=asked["revision"])
    if asked["describe"]:
        cli.output.result(told := aimed.describe(), lambda: _described(told))
        return
    _check_read(aimed, asked)
    given = document(asked["text"], asked["path"], stdin=asked["stdin"])
    answer = _run(cli, aimed, asked["reference"], given, _seconds(asked["deadline_ms"]))
    cli.output.result(answer, lambda: cli.output.indented(answer["result"]))


def _check_read(aimed: Aimed, asked: dict[str, Any]) -> None:
    """Refuse what only a write takes, and then a write, for which there are no approvals yet."""
    from headwater.operate.admission import admit_read

    if aimed.described.operation.effect == "read":
        for name in ("approval_file", "idempotency_key"):
            if asked[name] is not None:
                raise refuse(
                    "invalid_input", "A read takes no approval and no key.", safe="Nothing was sent.", field=name
                )
    elif asked["approval_file"] is not None:
        raise refuse("unsupported", "Writes with an approval are not supported yet.", safe="Nothing was sent.")
    admit_read(aimed.described)


def _seconds(milliseconds: int | None) -> float:
    if milliseconds is None:
        return limits.REQUEST_SECONDS
    if not 1 <= milliseconds <= limits.REQUEST_MAX_SECONDS * 1000:
        raise refuse("invalid_input", "A deadline is 1 to 120000 milliseconds.")
    return milliseconds / 1000


def _run(cli: Cli, aimed: Aimed, reference: str | None, given: Any, seconds: float) -> dict[str, Any]:
    import asyncio

    async def ask() -> dict[str, Any]:
        async with cli.host.operating.reading(aimed, reference) as reads:
            return await reads.read(given, seconds)

    return asyncio.run(ask())


def _described(told: dict[str, Any]) -> list[str]:
    shown = {name: value for name, value in told.items() if name != "input_schema"}
    required = told["input_schema"]["required"]
    takes = [f"  {name}{'' if name in required else ' (optional)'}" for name in told["input_schema"]["properties"]]
    return [*pairs(shown), *(["takes:", *takes] if takes else ["takes: {}"])]
