"""`headwater records search`: find records by what they say."""

from typing import Any

import click

from headwater.cli.output import clip, plain, table
from headwater.cli.session import Cli, page_options, pass_cli


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--instance", metavar="<connector>/<instance>", help="Only in this instance.")
@click.option("--stream", help="Only in streams of this name.")
@page_options
@pass_cli
def search(
    cli: Cli, query: tuple[str, ...], instance: str | None, stream: str | None, limit: int, cursor: str | None
) -> None:
    """Find records that hold every word of QUERY, the best first.

    A "phrase" has its words in order, and a word with a * at its end has any ending. Case and accents do not matter.
    Searched are the fields that a connector's manifest names under query.search.lexical_fields.

    Exit status: 0, also where nothing is found; 1 where there is no such stream; 2 where the query does not fit.
    """
    with cli.host.reading() as reader:
        page = reader.search(" ".join(query), instance, stream, limit, cursor)
    cli.output.result(page, lambda: _listed(page))


def _listed(page: dict[str, Any]) -> list[str]:
    rows = [
        {**row, "key": clip(row["key"], 32), "field": "".join(row["matched_fields"][:1]), "text": _shown(row)}
        for row in page["items"]
    ]
    columns = {"instance": "instance", "stream": "stream", "key": "key", "field": "in", "text": "what it says"}
    lines = table(rows, columns, empty=_nothing(page))
    if not page["complete"]:
        lines += ["", "There may be more: not everything was ranked. Use rarer words, or name a stream."]
    if "next_cursor" in page:
        lines += ["", f"There are more: --cursor {page['next_cursor']}"]
    return lines


def _nothing(page: dict[str, Any]) -> str:
    if page["searched"]:
        return "Nothing was found."
    return "Nothing here can be searched: no manifest names fields for it, or nothing was collected since it did."


def _shown(row: dict[str, Any]) -> str:
    """Return a snippet with its matches between brackets."""
    snippet = row["snippet"]
    for start, end in reversed(row["marks"]):
        snippet = f"{snippet[:start]}[{snippet[start:end]}]{snippet[end:]}"
    return " ".join(plain(snippet).split())
