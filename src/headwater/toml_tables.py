"""Editing one table of a TOML text: every byte outside of it stays, and in it every line that need not change."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

Path = tuple[str, ...]


def with_members(text: str, table: Path, members: Mapping[str, Any]) -> str:
    """Return the text with members of a table set, or taken out where None is given; a missing table is added.

    Raise ValueError where the table is written in a way that cannot be edited so, as in one line.
    """
    wanted = deepcopy(tomllib.loads(text))
    _edit(_descend(wanted, table), members)
    lines = _lines(text)
    start, end = _section(lines, table)
    header = lines[start] if start < end else _header(text, lines[:start], table)
    body = _edited("".join(lines[start + 1 : end]), members)
    mended = header + (body if line_end(text) == "\n" else re.sub(r"(?<!\r)\n", "\r\n", body))
    return _checked("".join([*lines[:start], mended, *lines[end:]]), wanted)


def without_table(text: str, table: Path) -> str:
    """Return the text without a table; the one above it stays, if need be empty. Raise as `with_members` does."""
    wanted = deepcopy(tomllib.loads(text))
    _descend(wanted, table[:-1]).pop(table[-1], None)
    lines = _lines(text)
    start, end = _section(lines, table)
    if start > 0 and start < end and not lines[start - 1].strip():
        start -= 1  # the empty line that set it off
    without = "".join([*lines[:start], *lines[end:]])
    if tomllib.loads(without) != wanted:
        without = "".join([*lines[:start], _header(text, lines[:start], table[:-1]), *lines[end:]])
    return _checked(without, wanted)


def without_tables(text: str, table: Path) -> str:
    """Return the text without a table and all that stand in it. Raise as `with_members` does."""
    while below := [
        name for name in map(_named, _lines(text)) if name and name != table and name[: len(table)] == table
    ]:
        text = without_table(text, max(below, key=len))
    return without_table(text, table)


def line_end(text: str) -> str:
    """Return the end of every line, LF where they differ."""
    return "\r\n" if "\n" in text and not re.search(r"(?<!\r)\n", text) else "\n"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _section(lines: Sequence[str], table: Path) -> tuple[int, int]:
    """Return where a table's lines begin and end; where both are equal it is missing, and belongs there.

    Empty lines and comments at its end are taken for those of the next table.
    """
    headers = [(number, _named(line)) for number, line in enumerate(lines)]
    starts = [(number, name) for number, name in headers if name is not None]
    starts.append((len(lines), ()))
    place = _end(lines, 0, len(lines))
    for (start, name), (after, _) in pairwise(starts):
        end = _end(lines, start + 1, after)
        if name == table:
            return start, end
        if name[: len(table) - 1] == table[:-1] and len(table) > 2:
            place = end
    return place, place


def _end(lines: Sequence[str], start: int, end: int) -> int:
    while end > start and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _named(line: str) -> Path | None:
    """Return the path that a table's header names, None for any other line."""
    if not line.lstrip().startswith("[") or line.lstrip().startswith("[["):
        return None
    try:
        value = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    path = []
    while value:
        ((name, value),) = value.items()
        path.append(name)
    return tuple(path)


def _header(text: str, before: Sequence[str], table: Path) -> str:
    end = line_end(text)
    gap = "" if not before or before[-1].endswith("\n") else end
    name = ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else f'"{part}"' for part in table)
    return f"{gap}{end}[{name}]{end}"


def _edited(body: str, members: Mapping[str, Any]) -> str:
    import tomlkit

    document = tomlkit.parse(body)
    for name, value in members.items():
        if value is None:
            document.pop(name, None)
        elif document.get(name) != value:
            document[name] = _inline(value)
    return tomlkit.dumps(document)


def _inline(value: Any) -> Any:
    """Return a value as it is written on one line: tables too, so that none begins a table of its own."""
    import tomlkit

    if isinstance(value, dict):
        table = tomlkit.inline_table()
        table.update({name: _inline(member) for name, member in value.items()})
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend([_inline(member) for member in value])
        return array
    return value


def _edit(row: dict[str, Any], members: Mapping[str, Any]) -> None:
    for name, value in members.items():
        if value is None:
            row.pop(name, None)
        else:
            row[name] = value


def _descend(root: dict[str, Any], table: Path) -> dict[str, Any]:
    for name in table:
        root = root.setdefault(name, {})
        if not isinstance(root, dict):
            raise ValueError(name)
    return root


def _checked(text: str, wanted: Mapping[str, Any]) -> str:
    """Return the text if it says what is wanted, and nothing else changed on the way."""
    if tomllib.loads(text) != wanted:
        raise ValueError("the table cannot be edited")
    return text
