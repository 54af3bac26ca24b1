"""A walk from the command line: page after page is asked for, and the records go to a new file or to stdout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from headwater.cli.output import Output, Unwritten, pairs, plain
from headwater.errors import HeadwaterError, refuse
from headwater.operate.walking import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.cli.options import Options
    from headwater.cli.session import Cli
    from headwater.joining.operating import Aimed, Reads

    Write = Callable[[Sequence[Any]], None]


class Walking:
    """One walk: what it asks for, and where its records go. `write` raises OSError or `Unwritten`, and cuts back."""

    def __init__(self, progress: Progress, write: Write, output: Output) -> None:
        self._progress, self._write, self._output = progress, write, output

    async def through(self, reads: Reads, seconds: float) -> None:
        """Ask for one page after the other, until the walk ends or stops. Raise what refuses the first page."""
        progress = self._progress
        while progress.goes_on:
            try:
                answer = await reads.read(progress.input, seconds)
            except HeadwaterError as error:
                if progress.pages == 0:
                    raise
                progress.refused(self._output.error(error))
                return
            lines = progress.read(answer["result"])
            if lines is None:
                return
            try:
                self._write(lines.values)
            except (OSError, Unwritten):
                progress.unwritten()
                return
            progress.written()
            self._output.note(f"Page {progress.pages}: {progress.records:,} records so far.")


def walk(cli: Cli, aimed: Aimed, given: Any, options: Options, connect: Callable[[], None] | None) -> None:
    """Walk, and print the summary. A first page that is refused is the command's own failure, and leaves no file.

    `connect` is what has to be done before the first request, once there is a place for the records.
    """
    from headwater.cli.ending import run

    operation, pages = aimed.described.operation, options.pages
    assert operation.walk is not None, "an operation without a walk is refused before"
    assert pages is not None, "options without a walk ask once"
    members = aimed.described.input_schema.get("properties", {})
    defaults = {name: rule["default"] for name, rule in members.items() if isinstance(rule, dict) and "default" in rule}
    progress = Progress(operation.walk, given, fields=options.fields, most_pages=pages, defaults=defaults)

    async def through(write: Write) -> None:
        async with cli.host.operating.reading(aimed, options.reference) as reads:
            await Walking(progress, write, cli.output).through(reads, options.seconds)

    with _written(cli.output, options.out, progress) as write:
        if connect is not None:
            connect()
        run(through(write))
    told = progress.summary(options.out)
    cli.output.result(told, lambda: _summary(cli.output, told), "walk")


@contextmanager
def _written(output: Output, out: str, progress: Progress) -> Iterator[Write]:
    """Have what writes the records of a page. A new file is its owner's alone, and gone where no page was answered."""
    if out == "-":
        yield output.lines
        return
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except (OSError, ValueError):
        message = "The file for the records cannot be made, or is there already: it is never written over."
        raise refuse("invalid_input", message, safe="Nothing was sent.", field="out") from None
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            yield lambda records: _append(file.fileno(), output.encoded(records))
    finally:
        if progress.pages == 0 and progress.goes_on:
            with suppress(OSError):
                os.unlink(out)


def _append(descriptor: int, content: bytes) -> None:
    """Write a page whole, or leave the file as it was before."""
    start, rest = os.lseek(descriptor, 0, os.SEEK_CUR), memoryview(content)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except BaseException:
        os.ftruncate(descriptor, start)
        raise


def _summary(output: Output, told: dict[str, Any]) -> list[str]:
    shown = {name: value for name, value in told.items() if name not in ("error", "resume", "missing")}
    lines = pairs(shown)
    if "missing" in told:
        lines.append(f"missing: {', '.join(map(plain, told['missing']))}")
    if "error" in told:
        lines.append(f"  {told['error']['data'].get('message', '')}")
    if "resume" in told:
        lines += ["  To go on, walk again with this input:", *output.indented(told["resume"])]
    return lines
