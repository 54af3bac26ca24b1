"""Searching records: what a person typed as an expression of the index, the best matches, and where in them it is.

The index holds no text. The few records of a page are read from `versions` and put, one by one, into an index in memory
that has the same tokens; that one says which fields match and cuts out the snippet.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import apsw
import msgspec

from headwater import clock, limits
from headwater.errors import refuse
from headwater.store.sqlite.database import queries
from headwater.store.sqlite.search_index import COLUMNS, reader_of

TOKENIZER: Final = "unicode61 remove_diacritics 2"
_TERM: Final = re.compile(r'"([^"]*)"(\*?)|([^\s"]+)')
_OPEN, _SHUT = "\x02", "\x03"
_MARKS: Final = str.maketrans({_OPEN: " ", _SHUT: " ", "\x00": " "})
_SNIPPET_TOKENS: Final = 24
_STEPS: Final = 10_000


@dataclass(frozen=True)
class Hit:
    """A record that matches: where it is, how well it fits (less is better), and what was found in it.

    `snippet` is of the first field that matches; `marks` are the places of the matches in it, in characters.
    """

    instance: str
    stream: str
    key: str
    version: int
    emitted_at: str
    score: float
    matched_fields: tuple[str, ...]
    snippet: str
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Page:
    """Some hits, best first; whether all matches were ranked; and after which place the next page goes on."""

    hits: tuple[Hit, ...]
    complete: bool
    last: tuple[float, int] | None


def expression(typed: str) -> str:
    """Turn what a person typed into an expression of FTS5: every word and every "phrase" has to occur.

    A `*` at the end stands for any ending. Nothing else means anything, so no query is malformed but one that has
    no word, or a quotation without an end. Raise `invalid_input` for those, and for what is too long.
    """
    if len(typed) > limits.SEARCH_QUERY_CHARACTERS:
        raise refuse("invalid_input", f"A query has at most {limits.SEARCH_QUERY_CHARACTERS} characters.")
    if typed.count('"') % 2:
        raise refuse("invalid_input", 'A quotation has no end: a phrase stands between two ".')
    terms = [_quoted(match) for match in _TERM.finditer(typed.translate(_MARKS))]
    terms = [term for term in terms if any(character.isalnum() for character in term)]
    if not terms:
        raise refuse("invalid_input", "The query holds no word.")
    if len(terms) > limits.SEARCH_WORDS:
        raise refuse("invalid_input", f"A query has at most {limits.SEARCH_WORDS} words.")
    return " AND ".join(terms)


def _quoted(match: re.Match[str]) -> str:
    phrase, star, word = match.groups()
    if word is not None:
        phrase, star = word.rstrip("*"), "*" if word.endswith("*") else ""
    return f'"{phrase}"{" *" if star else ""}'


def search(
    connection: apsw.Connection, match: str, streams: Sequence[int] | None, limit: int, after: tuple[float, int] | None
) -> Page:
    """Find the records that match an expression, in these streams or in all.

    Raise `invalid_input` where that takes longer than `limits.SEARCH_SECONDS`.
    """
    sql = queries()
    within = None if streams is None else msgspec.json.encode(streams).decode()
    last = after or (None, None)
    with _deadline(connection):
        bounds = (limits.SEARCH_MATCHES, *last, limit + 1)
        rows: list[tuple[Any, ...]] = connection.execute(sql["search"], (match, within, *bounds)).fetchall()
        excerpts = _Excerpts(match)
        hits = tuple(excerpts.hit(row[:-1]) for row in rows[:limit])
    building = bool(connection.execute(sql["searches_building"], (within,)).get)
    complete = not building and (not rows or rows[0][-1] <= limits.SEARCH_MATCHES)
    return Page(hits, complete, (hits[-1].score, hits[-1].version) if len(rows) > limit else None)


def place(last: tuple[float, int], match: str) -> str:
    """Return the cursor of the page that follows: it goes on with this query only."""
    return base64.urlsafe_b64encode(msgspec.json.encode((*last, _digest(match)))).decode().rstrip("=")


def after(cursor: str | None, match: str) -> tuple[float, int] | None:
    """Return what a cursor says. Raise `invalid_input` for one of another query, or of another list."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        score, seq, digest = msgspec.json.decode(text, type=tuple[float, int, str])
    except (ValueError, msgspec.DecodeError):
        digest = ""
    if digest != _digest(match):
        raise refuse("invalid_input", "The cursor is not one of this query; leave it out to begin with the best.")
    return score, seq


def _digest(match: str) -> str:
    return hashlib.sha256(match.encode()).hexdigest()[:12]


@contextmanager
def _deadline(connection: apsw.Connection) -> Iterator[None]:
    end = clock.monotonic() + limits.SEARCH_SECONDS
    connection.set_progress_handler(lambda: clock.monotonic() > end, _STEPS)
    try:
        yield
    except apsw.InterruptError as error:
        message = f"The search took longer than {limits.SEARCH_SECONDS:g} seconds; use rarer words, or name a stream."
        raise refuse("invalid_input", message) from error
    finally:
        connection.set_progress_handler(None)


class _Excerpts:
    """An index in memory that holds one record at a time."""

    def __init__(self, match: str) -> None:
        self._match = match
        self._memory = apsw.Connection(":memory:")
        columns = ", ".join(COLUMNS)
        self._memory.execute(f"CREATE VIRTUAL TABLE one USING fts5 ({columns}, tokenize = '{TOKENIZER}')")
        self._add = f"INSERT INTO one VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - of constants
        cut = (f"snippet(one, {n}, '{_OPEN}', '{_SHUT}', '…', {_SNIPPET_TOKENS})" for n in range(len(COLUMNS)))
        self._find = f"SELECT {', '.join(cut)} FROM one WHERE one MATCH ?"  # noqa: S608 - of constants

    def hit(self, row: tuple[Any, ...]) -> Hit:
        """Say which fields of a record match, and cut a snippet out of the first."""
        score, seq, instance, stream, key, emitted_at, data, fields = row
        names = msgspec.json.decode(fields, type=list[str])
        texts = [None if text is None else text.translate(_MARKS) for text in reader_of(names)(data)]
        self._memory.execute("DELETE FROM one")
        self._memory.execute(self._add, texts)
        cuts = self._memory.execute(self._find, (self._match,)).fetchone() or ()
        found = {name: cut for name, cut in zip(names, cuts, strict=False) if cut and _OPEN in cut}
        text, marks = _unmarked(next(iter(found.values()), ""))
        return Hit(instance, stream, key, seq, emitted_at, score, tuple(found), text, marks)


def _unmarked(cut: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Take the marks out of a snippet, and return the text and where they were."""
    text, marks = "", []
    for part in cut.split(_OPEN):
        marked, shut, rest = part.partition(_SHUT)
        if shut:
            marks.append((len(text), len(text) + len(marked)))
        text += marked + rest
    return text, tuple(marks)
