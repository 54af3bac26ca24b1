"""A walk of pages: what each page is asked with, and what follows from what it said. Asks and writes nothing itself.

while progress.goes_on:
    result = <ask for progress.input>        refused → progress.refused(error), of a later page than the first
    lines = progress.read(result)            None where this page stopped the walk
    <write lines.values>                     failed → progress.unwritten()
    progress.written()
progress.summary(out)
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal

from headwater import limits
from headwater.errors import refuse
from headwater.manifest.pointers import at
from headwater.manifest.walk import Condition, Counter, Position, Walk
from headwater.operate.paths import Fields, Path
from headwater.operate.results import content, failed_status
from headwater.operate.shaping import Lines, lines_of

Stop = Literal[
    "max_pages",
    "refused",
    "status",
    "write",
    "continues_without_position",
    "no_position",
    "invalid_position",
    "repeated_position",
    "records_not_a_list",
]
_DIGITS: Final = re.compile(r"-?[0-9]{1,15}")


def pages_of(text: str) -> int:
    """Read how many pages a walk may read. Raise `invalid_input` naming `max_pages` (CLI-679)."""
    if re.fullmatch(r"[0-9]{1,5}", text) and 1 <= int(text) <= limits.WALK_PAGES:
        return int(text)
    raise refuse("invalid_input", f"--max-pages takes 1 to {limits.WALK_PAGES}.", field="max_pages")


class Progress:
    """One walk, page by page, from the document of the caller to the summary (InvokeWalked).

    `defaults` are sent for parameters that the document leaves out. Raise `invalid_input` naming `input` where the
    document gives a walk that counts a position that is no number.
    """

    def __init__(
        self,
        walk: Walk,
        document: Mapping[str, Any],
        *,
        fields: Fields | None = None,
        most_pages: int = limits.WALK_PAGES_DEFAULT,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.pages = 0
        """Pages whose records were written."""
        self.records = 0
        """Records of these pages."""
        self.input: Mapping[str, Any] = {**document, **walk.query}
        """What the page is asked with that is to be read."""
        self._walk = walk
        self._fields = fields
        self._most_pages = most_pages
        self._defaults = defaults or {}
        self._had: frozenset[Path] = frozenset()
        self._sent: set[bytes] = set()
        self._page: Any = None
        self._lines = Lines(())
        self._ending: dict[str, Any] | None = None
        if walk.counter:
            self.input = {**self.input, walk.param: _count(self.input.get(walk.param), walk.counter)}
        self._send(self.input.get(walk.param))

    @property
    def goes_on(self) -> bool:
        """Whether another page is to be read."""
        return self._ending is None

    def read(self, result: Any) -> Lines | None:
        """Take the result of the page that was asked for; return what is to be written of it.

        None where the page stops the walk: it has a status that is no success, or no list of records.
        """
        status = failed_status(result)
        if status is not None:
            self._stop("status", status=status, resume=self.input)
            return None
        self._page = content(result)
        records = at(self._page, self._walk.records)
        if records is None:
            records = []
        if not isinstance(records, list):
            self._stop("records_not_a_list")
            return None
        self._lines = lines_of(records, self._fields)
        return self._lines

    def written(self) -> None:
        """Count the page that was read, and decide: go on while it says so, or end, or take the next position."""
        self.pages += 1
        self.records += len(self._lines.values)
        self._had |= self._lines.had
        continues = self._walk.continues
        if continues and self._holds(continues):
            self._turn("continues_without_position")
        elif ends := [end for end in self._walk.ends if self._holds(end)]:
            self._ending = {"end": ends[0].name}
        else:
            self._turn("no_position")

    def unwritten(self) -> None:
        """Stop at the page that was read: its records could not be written whole, and none of them counts."""
        self._stop("write", resume=self.input)

    def refused(self, error: Mapping[str, Any]) -> None:
        """Stop at a page that was refused, with the failure's object. A refused first page is the command's failure."""
        self._stop("refused", error=error, resume=self.input)

    def summary(self, out: str) -> dict[str, Any]:
        """Return what the walk came to; `out` is where the records are, as it was typed."""
        ending = self._ending or {}
        told = {"complete": "end" in ending, "out": out, "pages": self.pages, "records": self.records, **ending}
        missing = self._fields.unmatched(self._had) if self._fields and self.records else []
        return dict(sorted((told | ({"missing": missing} if missing else {})).items()))

    def _turn(self, without: Stop) -> None:
        """Make the input of the next page, or stop: `without` says so where no position is named."""
        walk = self._walk
        position = self.input[walk.param] + walk.counter.step if walk.counter else at(self._page, walk.next)
        if position is None:
            self._stop(without)
        elif _as_sent(position) is None:
            self._stop("invalid_position")
        elif not self._send(position):
            self._stop("repeated_position")
        else:
            rest = {name: value for name, value in self.input.items() if name not in walk.first_only}
            self.input = {**rest, walk.param: position}
            if self.pages >= self._most_pages:
                self._stop("max_pages", resume=self.input)

    def _send(self, position: Any) -> bool:
        """Note that a position is sent; whether it is for the first time (CLI-675)."""
        text = _as_sent(position)
        if text is None:
            return True
        known = len(self._sent)
        self._sent.add(sha256(text).digest())
        return len(self._sent) > known

    def _holds(self, condition: Condition) -> bool:
        if condition.test == "fewer_than":
            return self._is_short(condition.operand)
        value = at(self._page, condition.pointer)
        if condition.test == "equals":
            return isinstance(value, bool) == isinstance(condition.operand, bool) and value == condition.operand
        return value is None if condition.test == "absent" else value in ("", [], {})

    def _is_short(self, asked: Position) -> bool:
        """Whether the page has fewer records than were asked for; not where nobody knows how many that were."""
        number = asked if isinstance(asked, int) else _number(self.input.get(asked, self._defaults.get(asked)))
        return number is not None and len(self._lines.values) < number

    def _stop(self, why: Stop, **members: Any) -> None:
        self._ending = {"stopped": why, **members}


def _as_sent(position: Any) -> bytes | None:
    """Return the text of a query that a position is sent as, so that "5" and 5 are one; None for what is none."""
    if isinstance(position, bool) or not isinstance(position, str | int):
        return None
    try:
        text = str(position).encode()
    except ValueError:  # a lone surrogate, or more digits than Python writes
        return None
    return text if len(text) <= limits.WALK_POSITION_BYTES else None


def _number(value: Any) -> int | None:
    """Return the number that a parameter is sent as."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return value if type(value) is int else None


def _count(given: Any, counter: Counter) -> int:
    """Return where a counter begins: at the position that the document gives, or at its start."""
    number = counter.start if given is None else _number(given)
    if number is None:
        raise refuse("invalid_input", "The position of this walk must be a whole number.", field="input")
    return number
