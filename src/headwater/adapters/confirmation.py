"""What a provider permits: `permission.json` beside the manifest, before any workflow ships (INT-520, INT-521)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from headwater import limits
from headwater.manifest.faults import Fault, Reader

FILE: Final = "permission.json"
WORKFLOWS: Final = ("official", "private")
_GOOD_FOR: Final = timedelta(days=365)
_MEMBERS: Final = frozenset({"workflow", "basis", "source", "date"})


@dataclass(frozen=True)
class Confirmation:
    """That somebody looked whether the provider permits a workflow, where, on what basis and when."""

    workflow: str
    basis: str
    source: str
    day: date

    def is_old(self, today: date) -> bool:
        """Whether it was confirmed more than a year ago."""
        return today - self.day > _GOOD_FOR


def confirmations(folder: Path) -> tuple[list[Confirmation], list[Fault]]:
    """Return what a folder's file confirms, and what is wrong with it. No file confirms nothing."""
    reader = Reader()
    try:
        text = (folder / FILE).read_bytes()[: limits.DOCUMENT_BYTES]
        root = json.loads(text)
    except FileNotFoundError:
        return [], []
    except (OSError, ValueError, RecursionError):
        return [], [Fault("", "json", f"{FILE} is not valid JSON")]
    if not isinstance(root, dict):
        return [], [Fault("", "type", f"{FILE} must be an object")]
    reader.no_others(root, frozenset({"workflows"}))
    found = [_confirmation(reader, row) for row in reader.rows(root, "workflows")]
    return ([], reader.faults) if reader.faults else ([row for row in found if row is not None], [])


def _confirmation(reader: Reader, row: dict[str, Any]) -> Confirmation | None:
    reader.no_others(row, _MEMBERS)
    workflow = reader.choice(row, "workflow", WORKFLOWS, required=True) or ""
    basis = reader.plain(row, "basis", limits.DESCRIPTION_CHARACTERS)
    source = reader.plain(row, "source", limits.URL_CHARACTERS)
    day = _date(reader, row)
    return None if day is None else Confirmation(workflow, basis, source, day)


def _date(reader: Reader, row: Mapping[str, Any]) -> date | None:
    try:
        return date.fromisoformat(row.get("date", ""))
    except (TypeError, ValueError):
        with reader.at("date"):
            reader.fault("date", "must be a day such as 2026-11-30")
        return None
