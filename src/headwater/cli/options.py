"""How `invoke` is asked: its options read, and held to one another, before anything else is looked at (CLI-602)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from headwater import limits
from headwater.errors import HeadwaterError, refuse

if TYPE_CHECKING:
    from headwater.operate.paths import Fields, Path


class Options(Struct, frozen=True):
    """How it is asked, and what is printed of the answer: `fields` of it, or of each element of the array at `each`.

    `seconds` are for one request. `pages` is how many a walk asks for at most, its records going to `out`; None where
    there is no walk.
    """

    reference: str | None
    seconds: float
    fields: Fields | None
    each: Path | None
    pages: int | None
    out: str


def options_of(asked: Mapping[str, Any]) -> Options:
    """Read how it is asked, before anything else (CLI-602). Of several options that do not fit, the first is told."""
    wrong = dict(_misfits(asked))
    read = {name: _read(asked, name, wrong) for name in ("fields", "each", "max_pages")}
    for name in asked:  # in the order in which they were typed (CLI-588)
        if name in wrong:
            raise misfit(name, wrong[name])
    pages = (read["max_pages"] or limits.WALK_PAGES_DEFAULT) if asked["walk"] else None
    seconds, out = _seconds(asked["deadline_ms"]), asked["out"] or ""
    return Options(asked["reference"], seconds, read["fields"], read["each"], pages, out)


def _misfits(asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each option that does not go with the others, and why."""
    rules = (
        (("definitions_root", "credential_file"), asked["definition"] is None, "stands with --definition only."),
        (("max_pages", "out"), not asked["walk"], "stands with --walk only."),
        (("each",), asked["walk"], "does not stand beside --walk: its records are one a line."),
        (("fields", "each", "walk"), asked["describe"], "does not stand beside --describe, which asks nothing."),
        (("approval_file",), asked["approve"], "does not stand beside --approve."),
    )
    for names, applies, why in rules:
        for name in names:
            if applies and asked[name] not in (None, False):
                yield name, f"--{name.replace('_', '-')} {why}"
    if asked["walk"] and asked["out"] is None:
        yield "out", "A walk needs --out: a new file for its records, or - for stdout."


def _read(asked: Mapping[str, Any], name: str, wrong: dict[str, str]) -> Any:
    """Return what an option says, None where it is not given. What cannot be read is noted as wrong."""
    if asked[name] is None:
        return None
    from headwater.operate import paths, walking

    readers: dict[str, Callable[[str], Any]] = {
        "fields": paths.fields_of,
        "each": paths.each_of,
        "max_pages": walking.pages_of,
    }
    try:
        return readers[name](asked[name])
    except HeadwaterError as error:
        wrong.setdefault(name, error.message)
        return None


def _seconds(milliseconds: int | None) -> float:
    if milliseconds is None:
        return limits.REQUEST_SECONDS
    if not 1 <= milliseconds <= limits.REQUEST_MAX_SECONDS * 1000:
        raise refuse("invalid_input", "A deadline is 1 to 120000 milliseconds.", safe="Nothing was sent.")
    return milliseconds / 1000


def misfit(field: str, message: str) -> HeadwaterError:
    """Refuse an option or an argument that does not fit."""
    return refuse("invalid_input", message, safe="Nothing was sent.", field=field)
