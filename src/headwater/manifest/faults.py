"""Reasons to refuse a document, each with the place it was found."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from headwater import limits
from headwater.errors import HeadwaterError, refuse


class Fault(Struct, frozen=True):
    """One reason to refuse a document: an RFC 6901 pointer, a rule's name and a sentence."""

    pointer: str
    rule: str
    message: str


def escaped(step: object) -> str:
    """Return a member's name or an index as a step of a JSON pointer."""
    return str(step).replace("~", "~0").replace("/", "~1")


def refusal(code: str, message: str, faults: Sequence[Fault]) -> HeadwaterError:
    """Make the refusal that reports every fault at once."""
    shown = "; ".join(f"{fault.pointer or '/'}: {fault.message}" for fault in faults[:8])
    more = f" (and {len(faults) - 8} more)" if len(faults) > 8 else ""
    listed = [{"pointer": fault.pointer, "rule": fault.rule, "message": fault.message} for fault in faults]
    return refuse(code, f"{message} {shown}{more}.", faults=listed)


# What an object that is absent, or is none, is read as. Its members are not missed: the fault is its own.
_NOTHING: Final[dict[str, Any]] = {}


_UNSEEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp"})


class Reader:
    """Reads members of a JSON object and notes what is wrong, going on as far as it can."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._path: list[str] = []

    @contextmanager
    def at(self, *parts: str | int) -> Iterator[None]:
        """Read below a member or an index."""
        depth = len(self._path)
        self._path += [escaped(part) for part in parts]
        try:
            yield
        finally:
            del self._path[depth:]

    @property
    def pointer(self) -> str:
        """The place being read, as an RFC 6901 pointer."""
        return "".join(f"/{part}" for part in self._path)

    def fault(self, rule: str, message: str) -> None:
        """Note a fault at the place being read; a document that has too many is not told all of them."""
        if len(self.faults) < limits.FAULTS_PER_DOCUMENT:
            self.faults.append(Fault(self.pointer, rule, message))

    def text(self, holder: dict[str, Any], name: str, *, required: bool = False) -> str | None:
        """Read a non-empty string."""
        return self._member(holder, name, required, str, "a non-empty string") or None

    def plain(self, holder: dict[str, Any], name: str, longest: int) -> str:
        """Read a required text without line ends, escapes or other characters that show nothing."""
        value = self.text(holder, name, required=True) or ""
        if len(value) > longest or any(unicodedata.category(character) in _UNSEEN for character in value):
            with self.at(name):
                self.fault("text", f"must be plain text of at most {longest} characters")
        return value

    def shaped(self, holder: dict[str, Any], name: str, shape: re.Pattern[str], described: str) -> str:
        """Read a required text of a shape."""
        value = self.text(holder, name, required=True) or ""
        if value and (len(value) > limits.LABEL_CHARACTERS or not shape.fullmatch(value)):
            with self.at(name):
                self.fault("shape", described)
        return value

    def no_others(self, holder: Mapping[str, Any], members: frozenset[str]) -> None:
        """Refuse the members of an object that its format does not have."""
        for name in sorted(holder.keys() - members):
            with self.at(name):
                self.fault("unknown_member", "is not a member of this format")

    def flag(self, holder: dict[str, Any], name: str, *, required: bool = False) -> bool | None:
        """Read a boolean."""
        value: bool | None = self._member(holder, name, required, bool, "true or false")
        return value

    def table(self, holder: dict[str, Any], name: str, *, required: bool = False) -> dict[str, Any]:
        """Read an object; where it is absent, nothing in it is required."""
        value: dict[str, Any] | None = self._member(holder, name, required, dict, "an object")
        return _NOTHING if value is None else value

    def names(self, holder: dict[str, Any], name: str, *, required: bool = False) -> tuple[str, ...] | None:
        """Read an array of non-empty strings."""
        items = self._member(holder, name, required, list, "an array of non-empty strings")
        if items is None or all(isinstance(item, str) and item for item in items):
            return None if items is None else tuple(items)
        with self.at(name):
            self.fault("type", "must be an array of non-empty strings")
        return None

    def rows(self, holder: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
        """Read an array of objects, each at its own place."""
        for index, row in enumerate(self._member(holder, name, False, list, "an array of objects") or ()):
            with self.at(name, index):
                if isinstance(row, dict):
                    yield row
                else:
                    self.fault("type", "must be an object")

    def choice(
        self, holder: dict[str, Any], name: str, choices: Sequence[str], *, required: bool = False
    ) -> str | None:
        """Read one of a few words."""
        word = self.text(holder, name, required=required)
        if word is None or word in choices:
            return word
        with self.at(name):
            self.fault("enum", f"must be {' or '.join(choices)}")
        return None

    def _member(self, holder: dict[str, Any], name: str, required: bool, kind: type, described: str) -> Any:
        if name not in holder:
            if required and holder is not _NOTHING:
                with self.at(name):
                    self.fault("required", "is missing")
            return None
        value = holder[name]
        if isinstance(value, kind) and value != "":
            return value
        with self.at(name):
            self.fault("type", f"must be {described}")
        return None
