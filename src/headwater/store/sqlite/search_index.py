"""The full-text index: kept in step with the records, in the same transactions, and built anew in bounded steps.

Its rows are numbered as the versions are, so that what a record's new version replaces is found without a scan. Within
a transaction rows are taken out first and put in afterwards, both in order: the index then writes its pages once.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import apsw
import msgspec

from headwater import limits
from headwater.store.sqlite.database import queries

COLUMNS: Final = tuple(f"c{number}" for number in range(limits.SEARCH_FIELDS))
# The names that msgspec can look for; a record is read as a whole where one is none of them.
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
Texts = tuple[str | None, ...]


class SearchIndex:
    """Follows what is written to some streams; those that declare nothing to search cost nothing."""

    def __init__(self, connection: apsw.Connection, streams: Iterable[int]) -> None:
        sql = queries()
        self._executemany = connection.cursor().executemany
        self._drop, self._add = sql["drop_from_search"], sql["add_to_search"]
        self._texts: dict[int, Callable[[str], Texts]] = {}
        for stream in streams:
            fields = connection.execute(sql["search_fields_of"], (stream,)).get
            if fields is not None:
                self._texts[stream] = reader_of(msgspec.json.decode(fields, type=list[str]))

    def follow(self, versions: Sequence[tuple[Any, ...]]) -> None:
        """Take out what these new rows of `versions` replace, and put in the last of each key."""
        if not self._texts or not versions:
            return
        first = versions[0][0]
        gone, last = [], {}
        for seq, prev, stream, _, _, key, _, data in versions:
            if stream in self._texts:
                if prev is not None and prev < first:
                    gone.append(prev)
                last[stream, key] = (seq, stream, data)
        self.replace(gone, last.values())

    def replace(self, gone: Iterable[int], fresh: Iterable[tuple[int, int, str | None]]) -> None:
        """Take versions out, and put others in: (number, stream, text), where the text is None for a delete."""
        self._executemany(self._drop, [(seq,) for seq in sorted(gone)])
        added = sorted(row for row in fresh if row[2] is not None)
        self._executemany(self._add, [(seq, *self._texts[stream](data or "")) for seq, stream, data in added])


def reader_of(fields: Sequence[str]) -> Callable[[str], Texts]:
    """Return what reads the texts of these fields out of a record, a place for each column of the index.

    Only strings are texts. Everything else of the record is skipped, unread; one that is nested too deeply for
    that has none.
    """
    rest = (None,) * (len(COLUMNS) - len(fields))
    none = (None,) * len(COLUMNS)
    values = _values(fields)

    def texts(data: str) -> Texts:
        try:
            return (*map(_text, values(data)), *rest)
        except (msgspec.DecodeError, RecursionError):
            return none

    return texts


def _values(fields: Sequence[str]) -> Callable[[str], Iterable[Any]]:
    if all(_PLAIN.fullmatch(name) for name in fields):
        named = dict(zip(COLUMNS, fields, strict=False))
        record = msgspec.defstruct("Record", [(column, Any, None) for column in named], rename=named)
        decode_some = msgspec.json.Decoder(record).decode
        return lambda data: msgspec.structs.astuple(decode_some(data))
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    return lambda data: map(decode(data).get, fields)


def _text(value: Any) -> str | None:
    return value[: limits.SEARCH_CHARACTERS] if isinstance(value, str) else None


def declare(connection: apsw.Connection, streams: Mapping[int, Sequence[str]]) -> None:
    """Note which fields of some streams are searched from now on. Use it inside a transaction."""
    sql = queries()
    for stream, fields in streams.items():
        known = connection.execute(sql["search_fields_of"], (stream,)).get
        text = msgspec.json.encode(fields).decode()
        if known != text and (fields or known is not None):
            connection.execute(sql["declare_search"], (stream, text))


def build(connection: apsw.Connection, streams: Iterable[int]) -> bool:
    """Do one bounded step of what is left to index of some streams; say whether there was one to do.

    Use it inside a transaction, again and again until it says no.
    """
    sql = queries()
    for stream in streams:
        built_to = connection.execute(sql["search_built_to"], (stream,)).get
        if built_to is not None:
            _build(connection, stream, built_to)
            return True
    return False


def _build(connection: apsw.Connection, stream: int, built_to: int) -> None:
    sql = queries()
    index = SearchIndex(connection, [stream])
    rows: list[tuple[int, int, str | None]] = []
    held = 0
    reached: int | None = None
    for seq, live, data in connection.execute(sql["versions_to_index"], (stream, built_to, limits.BATCH_EFFECTS)):
        reached = seq
        if live:
            rows.append((seq, stream, data))
            held += len(data or "")
        if held > limits.BATCH_BYTES:
            break
    index.replace((seq for seq, *_ in rows), rows)
    connection.execute(sql["note_search_built"], (stream, reached))
    if reached is None:
        connection.execute(sql["forget_search"], (stream,))
