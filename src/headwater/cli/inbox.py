"""`headwater inbox`: the questions that connectors wait for, answered from any terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import UNSET

from headwater.cli.output import table, typed
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

COLUMNS = {
    "question": "question",
    "instance": "instance",
    "kind": "kind",
    "message": "what it asks",
    "seconds_left": "seconds left",
}


@click.group()
def inbox() -> None:
    """Questions that connectors wait for."""


@inbox.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the open questions. A question is open while its run waits, and is kept nowhere. Exit status: 0."""
    rows = [
        {
            "question": item.question_id,
            "run_id": item.run_id,
            "instance": item.instance,
            "kind": item.asked.kind,
            "message": item.asked.message,
            "schema": None if item.asked.schema is UNSET else item.asked.schema,
            "seconds_left": int(item.seconds_left),
        }
        for item in cli.host.questions()
    ]
    cli.output.result({"items": rows}, lambda: table(rows, COLUMNS, empty="No question is open."))


@inbox.command()
@click.argument("question", required=False)
@click.option("--answer-file", type=click.Path(path_type=Path), help='The answer: {"answers":[{"kind","data"}]}.')
@click.option("--decline", is_flag=True, help="Say no; the connector goes on without an answer.")
@pass_cli
def answer(cli: Cli, question: str | None, answer_file: Path | None, *, decline: bool) -> None:
    """Answer an open question, or the only one there is; what is secret is not shown as it is typed.

    Exit status: 0, 1 where the question is not open any more.
    """
    asked = [item for item in cli.host.questions() if question in (None, item.question_id)]
    if len(asked) != 1:
        message = "No such question is open." if not asked else "Several questions are open; name one."
        raise refuse("not_found" if not asked else "invalid_input", message, command="headwater inbox list")
    data = None if decline else _answer(asked[0].asked, answer_file)
    if not cli.host.answer(asked[0].question_id, data):
        message = "The question was not open any more when the answer came."
        raise refuse("not_found", message, safe="The answer was not kept.", command="headwater inbox list")
    result = {"question": asked[0].question_id, "status": "cancelled" if data is None else "success"}
    words = "Declined." if data is None else "Answered."
    cli.output.result(result, lambda: [words, f"  Next: {typed('headwater')} runs show {asked[0].run_id}"])


def _answer(question: Any, answer_file: Path | None) -> Mapping[str, Any] | None:
    """Return the answer's data; None where the owner gives up."""
    import asyncio

    from headwater.cli.answers import AnswerFile, Terminal

    respondent = AnswerFile(answer_file) if answer_file is not None else Terminal.here()
    if respondent is None:
        message = "There is no terminal to ask at."
        raise refuse("invalid_input", message, safe="The question stays open.", command="headwater inbox answer --help")
    data = asyncio.run(respondent.answer(question))
    if data is None and answer_file is not None:
        raise refuse("invalid_input", "The answer file has no answer of this kind.", safe="The question stays open.")
    return data
