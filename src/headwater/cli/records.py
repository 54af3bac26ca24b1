"""`headwater records`: look at what was collected."""

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import msgspec

from headwater.cli.output import clip, pairs, plain, table
from headwater.cli.searching import search
from headwater.cli.session import Cli, page_options, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.store.sqlite.reading import RecordFilter


@click.group()
def records() -> None:
    """Look at records: list, search, get, history, export."""


records.add_command(search)


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the filters that `list` and `export` share."""
    since = click.option("--since", metavar="TIME", help="Not before this time (RFC 3339, or a date).")
    until = click.option("--until", metavar="TIME", help="Before this time.")
    where = click.option(
        "--where", "fields", multiple=True, metavar="FIELD=VALUE", help="Only where a field has a value."
    )
    return since(until(where(command)))


@records.command("list")
@click.argument("instance", metavar="<connector>/<instance>")
@click.argument("stream")
@filter_options
@page_options
@pass_cli
def list_(
    cli: Cli,
    instance: str,
    stream: str,
    since: str | None,
    until: str | None,
    fields: tuple[str, ...],
    limit: int,
    cursor: str | None,
) -> None:
    """List a stream's records, newest first. Exit status: 0, or 1 where there is no such stream."""
    with cli.host.reading() as reader:
        page = reader.records(instance, stream, _filter(since, until, fields), limit, cursor)
    cli.output.result(page, lambda: _listed(page))


@records.command()
@click.argument("instance", metavar="<connector>/<instance>")
@click.argument("stream")
@click.argument("key")
@pass_cli
def get(cli: Cli, instance: str, stream: str, key: str) -> None:
    """Show one record. Exit status: 0, or 1 where there is none with this key."""
    with cli.host.reading() as reader:
        record = reader.record(instance, stream, key)
    cli.output.result(record, lambda: [*pairs(_without_data(record)), *_indented(record["data"])])


@records.command()
@click.argument("instance", metavar="<connector>/<instance>")
@click.argument("stream")
@click.argument("key")
@click.option("--limit", type=click.IntRange(1, 1000), default=25, help="How many versions at most (default 25).")
@pass_cli
def history(cli: Cli, instance: str, stream: str, key: str, limit: int) -> None:
    """Show every version of one record, newest first. Exit status: 0, or 1 where there is none with this key."""
    with cli.host.reading() as reader:
        versions = reader.history(instance, stream, key, limit)
    columns = {"version": "version", "emitted_at": "emitted at", "run_id": "run", "shown": "data"}
    shown = [{**row, "shown": _preview(row["data"])} for row in versions]
    cli.output.result({"versions": versions}, lambda: table(shown, columns, empty=""))


@records.command()
@click.argument("instance", metavar="<connector>/<instance>")
@click.argument("stream")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", help="JSON lines, or a table.")
@click.option("--out", type=click.Path(path_type=Path), help="A file; stdout without it.")
@filter_options
@pass_cli
def export(
    cli: Cli,
    instance: str,
    stream: str,
    form: str,
    out: Path | None,
    since: str | None,
    until: str | None,
    fields: tuple[str, ...],
) -> None:
    """Write all of a stream's records: the data as it came, a record a line; or CSV, a column a top-level field.

    Exit status: 0, or 1 where there is no such stream.
    """
    with cli.host.reading() as reader:
        rows = reader.every_record(instance, stream, _filter(since, until, fields))
        if out is None:
            _write(rows, form, sys.stdout.buffer)
            return
        count = _to_file(rows, form, out)
    cli.output.result({"records": count, "out": str(out)}, lambda: [f"{count:,} records written."])


def _to_file(rows: Iterator[Mapping[str, Any]], form: str, out: Path) -> int:
    try:
        with out.open("wb") as file:
            return _write(rows, form, file)
    except OSError as error:
        raise refuse("invalid_input", "The file that was named cannot be written.") from error


def _write(rows: Iterator[Mapping[str, Any]], form: str, file: IO[bytes]) -> int:
    return _write_csv(rows, file) if form == "csv" else _write_lines(rows, file)


def _write_lines(rows: Iterator[Mapping[str, Any]], file: IO[bytes]) -> int:
    count = 0
    for row in rows:
        file.write(msgspec.json.encode(row) + b"\n")
        count += 1
    return count


def _write_csv(rows: Iterator[Mapping[str, Any]], file: IO[bytes]) -> int:
    """Write a table. Its columns are the fields of the first thousand records; later ones stand in `more`."""
    first = [row for row, _ in zip(rows, range(1000), strict=False)]
    fields = dict.fromkeys(name for row in first for name in _decoded(row["data"]))
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(["key", *fields, "more"])
    count = 0
    for row in _chained(first, rows):
        data = _decoded(row["data"])
        more = {name: value for name, value in data.items() if name not in fields}
        cells = [_csv_cell(data.get(name)) for name in fields]
        writer.writerow([row["key"], *cells, msgspec.json.encode(more).decode() if more else ""])
        count += 1
    text.detach()
    return count


def _chained(first: list[Mapping[str, Any]], rest: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    yield from first
    yield from rest


def _csv_cell(value: Any) -> str:
    """Return a cell. Text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _filter(since: str | None, until: str | None, fields: tuple[str, ...]) -> "RecordFilter":
    from headwater.store.sqlite.reading import RecordFilter

    pairs_ = [field.partition("=") for field in fields]
    if any(not equals or '"' in name for name, equals, _ in pairs_):
        raise refuse("invalid_input", "--where takes FIELD=VALUE, with the name of a top-level field.")
    return RecordFilter(since, until, [(name, value) for name, _, value in pairs_])


def _listed(page: Mapping[str, Any]) -> Iterable[str]:
    columns = {"key": "key", "time": "time", "shown": "data"}
    rows = [
        {"key": clip(row["key"], 32), "time": row.get("time", row["emitted_at"]), "shown": _preview(row["data"])}
        for row in page["items"]
    ]
    yield from table(rows, columns, empty="No record fits.")
    if "next_cursor" in page:
        yield f"There is more: --cursor {page['next_cursor']}"


def _preview(data: msgspec.Raw | None) -> str:
    return "(deleted)" if data is None else clip(bytes(data)[:400].decode("utf-8", "replace"), 90)


def _indented(data: msgspec.Raw) -> list[str]:
    return [plain(line) if line.strip() else line for line in msgspec.json.format(bytes(data)).decode().splitlines()]


def _decoded(data: msgspec.Raw) -> dict[str, Any]:
    return dict(msgspec.json.decode(bytes(data)))


def _without_data(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "data"}
