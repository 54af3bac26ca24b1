"""Advice: what a manifest may do better. It refuses nothing."""

import re
from collections.abc import Iterator
from typing import Final

from headwater.manifest.declaration import Declaration, Stream
from headwater.manifest.faults import Fault, escaped

# The names that Core gives to a source's own times (CORE-025), and what others call them.
_CREATED: Final = re.compile(r"(date_?)?(created|creation)(_?(on|at|date|time))?", re.IGNORECASE)
_UPDATED: Final = re.compile(
    r"(date_?)?(last_?)?(modified|updated|changed|edited)(_?(on|at|date|time))?", re.IGNORECASE
)
_NAMES: Final = {"source_created_at": _CREATED, "source_updated_at": _UPDATED}


def advise(declaration: Declaration) -> Iterator[Fault]:
    """Yield each piece of advice with the place that it is about."""
    for index, stream in enumerate(declaration.streams.values()):
        yield from _times(stream, f"/streams/{index}/schema/properties")


def _times(stream: Stream, place: str) -> Iterator[Fault]:
    """Find times of the source that have names of their own."""
    for name, schema in (stream.schema or {}).get("properties", {}).items():
        if not isinstance(schema, dict) or schema.get("format") != "date-time":
            continue
        for better, others in _NAMES.items():
            if better not in stream.fields and others.fullmatch(name):
                yield Fault(f"{place}/{escaped(name)}", "source_time", f"a source's own time is called {better}")
