"""Content lines, as iCalendar (RFC 5545, 3.1) and vCard (RFC 6350, 3.2) write them: unfolded, split, put in components.

What cannot be read is left out and counted: a card with one bad line is still a card.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

NESTING: Final = 16
LINES: Final = 200_000

_LINE = re.compile(
    r'(?:([\w-]+)\.)?([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+(?:=(?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)?)*):(.*)',
    re.DOTALL,
)
_PARAMETER = re.compile(r';([A-Za-z0-9-]+)(?:=((?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*))?')
_VALUE = re.compile(r'"([^"]*)"|([^",]+)')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CARET = re.compile(r"\^([n^'])")


class BrokenError(Exception):
    """The text is not what it should be; the message says in what, and repeats nothing of it."""


@dataclass(frozen=True)
class Line:
    """One property: its name in capitals, its parameters by name in capitals, and its value as it was written."""

    name: str
    value: str
    parameters: dict[str, list[str]] = field(default_factory=dict)
    group: str = ""

    def parameter(self, name: str) -> str:
        """Return a parameter's first value, empty where there is none."""
        return next(iter(self.parameters.get(name, ())), "")

    @property
    def text(self) -> str:
        """The value as text."""
        return unescaped(self.value)

    def parts(self, separator: str) -> list[str]:
        """Return the texts of a value that is a list."""
        return [unescaped(part) for part in split(self.value, separator)]


@dataclass
class Component:
    """A component: its name in capitals, its properties, the components inside."""

    name: str
    lines: list[Line] = field(default_factory=list)
    inside: list["Component"] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Line]:
        """Yield the properties of a name."""
        return (line for line in self.lines if line.name == name)

    def first(self, name: str) -> Line | None:
        """Return the first property of a name."""
        return next(self.all(name), None)

    def text(self, name: str) -> str | None:
        """Return the text of the first property of a name."""
        line = self.first(name)
        return None if line is None else line.text


def components(text: str) -> tuple[list[Component], int]:
    """Return the outermost components, and how many lines cannot be read. Raise `BrokenError` where none is whole."""
    root, unread = Component(""), 0
    stack = [root]
    for number, raw in enumerate(_unfolded(text)):
        if number > LINES:
            raise BrokenError("it has too many lines")
        line = _read(raw)
        if line is None:
            unread += 1
        elif line.name == "BEGIN":
            stack.append(Component(line.value.strip().upper()))
            if len(stack) > NESTING:
                raise BrokenError("it is nested too deeply")
        elif line.name == "END":
            closed = stack.pop()
            if not stack or closed.name != line.value.strip().upper():
                raise BrokenError("its components do not end where they should")
            stack[-1].inside.append(closed)
        else:
            stack[-1].lines.append(line)
    if len(stack) > 1:
        raise BrokenError("it ends in the midst of a component")
    if not root.inside:
        raise BrokenError("it has no component")
    return root.inside, unread + len(root.lines)


def _unfolded(text: str) -> Iterator[str]:
    whole = re.sub(r"\n[ \t]", "", text.replace("\r\n", "\n").replace("\r", "\n"))
    return (line for line in whole.split("\n") if line.strip())


def _read(raw: str) -> Line | None:
    found = _LINE.fullmatch(raw)
    if found is None:
        return None
    group, name, written, value = found.groups()
    parameters: dict[str, list[str]] = {}
    for key, values in _PARAMETER.findall(written):
        texts = [_uncareted(quoted or plain) for quoted, plain in _VALUE.findall(values)]
        # A parameter without a name of its own is a type, as vCard 2.1 has it.
        parameters.setdefault(key.upper() if values else "TYPE", []).extend(texts if values else [key])
    return Line(name.upper(), value, parameters, (group or "").lower())


def _uncareted(text: str) -> str:
    """Undo the escapes of a parameter (RFC 6868)."""
    return _CARET.sub(lambda found: {"n": "\n", "^": "^", "'": '"'}[found[1]], text)


def split(text: str, separator: str) -> list[str]:
    """Split a value as it was written; a separator behind a backslash is none."""
    parts = [""] if text else []
    for piece in re.findall(rf"\\.|{separator}|[^\\{separator}]+|\\", text, re.DOTALL):
        if piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def unescaped(text: str) -> str:
    """Undo the escapes of a text (RFC 5545, 3.3.11)."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], text)
