"""Paths, such as `ticket.id`, `events[].field_name` and `/page[after]`: how they are read, and what they reach."""

import re
from collections import Counter
from typing import Any, Final, Literal

from msgspec import Struct

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.pointers import is_pointer, tokens

ELEMENTS: Final = None
"""The step `[]`: the rest of the path, over each element of an array."""

Step = str | None
Tree = dict[Step, "Tree"]

NOTHING: Final = object()
"""What a path reaches where it does not match."""

# A name holds none of these. A lone surrogate is no text that a result can hold.
_NAME: Final = r"[^.\[\],:/\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+"
_ALIAS: Final = re.compile(_NAME)
_DOTTED: Final = re.compile(rf"(?:\[\]\.)?{_NAME}(?:\[\])?(?:\.{_NAME}(?:\[\])?)*")
_STEPS: Final = re.compile(rf"\[\]|{_NAME}")
# What an answer says beside the members that were asked for (CLI-623).
_RESERVED: Final = frozenset({"missing", "records", "request_id", "mutation", "source_audit"})


class Path(Struct, frozen=True):
    """One path: how it was written, an alias included, and the names and `ELEMENTS` that it leads through."""

    written: str
    steps: tuple[Step, ...]
    alias: str | None = None

    @property
    def name(self) -> str:
        """The member that it is printed under: its alias, or else its first name."""
        return str(self.steps[0] if self.alias is None else self.alias)


class Fields(Struct, frozen=True):
    """The paths of `--fields`, and the tree that those without an alias print; a branch without twigs prints whole."""

    paths: tuple[Path, ...]
    tree: Tree

    def unmatched(self, had: frozenset[Path]) -> list[str]:
        """Return the paths that are not among those that something had, as they were written."""
        return [path.written for path in self.paths if path not in had]


def fields_of(text: str) -> Fields:
    """Read a list of paths. Raise `invalid_input` naming `fields` for one that cannot be read (CLI-621 to CLI-625)."""
    items = text.split(",")
    if len(items) > limits.SHAPING_PATHS:
        raise _refused("fields", f"--fields takes at most {limits.SHAPING_PATHS} paths.")
    paths = [_aliased(item.strip()) for item in items]
    _check_names(paths)
    return Fields(tuple(dict.fromkeys(paths)), _tree([path.steps for path in paths if path.alias is None]))


def each_of(text: str) -> Path:
    """Read the one path of `--each`. Raise `invalid_input` naming `each` where it is none (CLI-615)."""
    path = _path(text.strip(), "each")
    if ELEMENTS in path.steps or "," in text:
        raise _refused("each", "--each takes one path of member names, without [] and without a comma.")
    return path


def reached(value: Any, steps: tuple[Step, ...]) -> Any:
    """Return the value that steps lead to, or `NOTHING`. `[]` leads to the array of what its elements lead to."""
    for index, step in enumerate(steps):
        if step is ELEMENTS:
            return _over(value, steps[index + 1 :])
        if not isinstance(value, dict) or step not in value:
            return NOTHING
        value = value[step]
    return value


def picked(value: Any, tree: Tree) -> Any:
    """Return what a tree of paths leaves of a value, or `NOTHING` where none of them matches (CLI-611, CLI-635)."""
    if not tree:
        return value
    if isinstance(value, dict):
        found = ((name, picked(value[name], below)) for name, below in tree.items() if name in value)
        return {name: one for name, one in found if one is not NOTHING} or NOTHING
    if isinstance(value, list) and ELEMENTS in tree:
        return _matching(value, [picked(element, tree[ELEMENTS]) for element in value])
    return NOTHING


def _over(value: Any, steps: tuple[Step, ...]) -> Any:
    if not isinstance(value, list):
        return NOTHING
    return _matching(value, [reached(element, steps) for element in value])


def _matching(array: list[Any], found: list[Any]) -> Any:
    """Return what was found in an array; an empty one stays empty, one without a match is not reached (CLI-612)."""
    matching = [one for one in found if one is not NOTHING]
    return matching if matching or not array else NOTHING


def _tree(ways: list[tuple[Step, ...]]) -> Tree:
    """Join the steps of several paths, in the order of their names; what is below a whole member adds nothing."""
    root: Tree = {}
    for steps in sorted(ways, key=lambda steps: [step or "" for step in steps]):
        tree = root
        for step in steps:
            if tree.get(step) == {}:
                break
            tree = tree.setdefault(step, {})
    return root


def _aliased(item: str) -> Path:
    """Read one item of a list: a path, or an alias and a path."""
    alias, colon, rest = ("", "", item) if item.startswith("/") else item.partition(":")
    if colon and not _ALIAS.fullmatch(alias):
        raise _refused("fields", "--fields: an alias must be a name.")
    path = _path(rest if colon else item, "fields")
    if colon:
        return Path(item, path.steps, alias)
    if path.steps[0] is ELEMENTS:
        raise _refused("fields", "--fields: a path that begins with [] needs an alias.")
    return path


def _path(text: str, field: Literal["fields", "each"]) -> Path:
    """Read one path: names and `[]` between dots, or a JSON pointer."""
    steps: tuple[Step, ...] = ()
    if text.startswith("/") and is_pointer(text):
        steps = tokens(text)
    elif _DOTTED.fullmatch(text):
        steps = tuple(ELEMENTS if step == "[]" else step for step in _STEPS.findall(text))
    if not 1 <= len(steps) <= limits.SHAPING_STEPS:
        most = limits.SHAPING_STEPS
        raise _refused(field, f"--{field}: a path is names with dots, or a JSON pointer, of at most {most} steps.")
    return Path(text, steps)


def _check_names(paths: list[Path]) -> None:
    """Refuse an output name that an answer has itself, and an alias that is another output name (CLI-623, CLI-624)."""
    aliases = Counter(path.alias for path in paths if path.alias is not None)
    unaliased = {path.name for path in paths if path.alias is None}
    if _RESERVED & (aliases.keys() | unaliased):
        raise _refused("fields", f"--fields: {', '.join(sorted(_RESERVED))} are members of every answer. Use an alias.")
    if aliases.keys() & unaliased or any(times > 1 for times in aliases.values()):
        raise _refused("fields", "--fields: an alias repeats another name of the output.")


def _refused(field: str, message: str) -> HeadwaterError:
    return refuse("invalid_input", message, field=field)
