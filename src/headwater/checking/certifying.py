"""Certifying an integration: its manifest, its code as text, and its hooks in their own process, clause by clause.

Nothing is sent to anybody. The hooks run against what `fixtures/provider.json` says that the service answers, and
against a service that refuses, is down, or talks nonsense. Without a recording only what needs none is judged.
"""

import ast
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from headwater import limits
from headwater.adapters.confirmation import confirmations
from headwater.adapters.hosting import Unready, started
from headwater.adapters.registry import CODE, MANIFEST
from headwater.checking.hook_trials import Trials
from headwater.checking.integration_clauses import ASKED, clause_of
from headwater.checking.recorded import recording
from headwater.errors import refuse
from headwater.manifest.hook_source import hook_faults
from headwater.manifest.integration import Integration, examine_integration

STATIC = frozenset(f"INT-{number}" for number in (*range(102, 106), *range(130, 135), *range(151, 174), 332))


@dataclass(frozen=True)
class Certified:
    """What is known of one clause: `fail`, `pass` or `not applicable`, and what was seen."""

    clause: str
    mark: str
    seen: str = ""

    @property
    def is_serious(self) -> bool:
        """Whether it keeps the integration from being certified."""
        return self.mark == "fail" and ASKED[self.clause].level == "must"


async def certify(folder: Path, hidden: Sequence[Path]) -> list[Certified]:
    """Judge the integration of a folder; failures come first. Raise `invalid_input` where it holds none."""
    manifest, source = _read(folder / MANIFEST), _read(folder / CODE)
    if manifest is None:
        raise refuse("invalid_input", "The folder holds no integration.json.", safe="Nothing was started.")
    integration, faults = examine_integration(manifest)
    if integration is not None:
        faults = [*faults, *hook_faults(integration, source)]
    failed = [(clause_of(fault), f"{fault.pointer or '/'} {fault.message}") for fault in faults]
    failed += _permitted(folder)
    shown = {clause for clause in ASKED if clause in STATIC or clause == "INT-521"} if integration else set()
    if source is not None:
        failed += _imports(source)
        shown.add("INT-491")
    if integration is not None and source is not None and not faults:
        before = _digest(folder)
        with tempfile.TemporaryDirectory(prefix="headwater-certify-") as place:
            tried, seen = await _tried(folder, integration, hidden, Path(place))
        failed += tried
        shown |= seen
        if _digest(folder) != before:
            failed.append(("INT-195", "A hook wrote into the folder of the integration."))
    return sorted(_rows(failed, shown), key=lambda row: (row.mark != "fail", row.mark != "pass", row.clause))


def _rows(failed: Sequence[tuple[str, str]], shown: set[str]) -> Iterator[Certified]:
    first = dict(reversed(failed))
    for clause in ASKED:
        if clause in first:
            yield Certified(clause, "fail", first[clause])
        elif clause in shown:
            yield Certified(clause, "pass")
        else:
            yield Certified(clause, "not applicable", "Nothing could show it.")


async def _tried(
    folder: Path, integration: Integration, hidden: Sequence[Path], place: Path
) -> tuple[list[tuple[str, str]], set[str]]:
    """Run the hooks; return the clauses that failed with what was seen, and those that were shown at all."""
    known = recording(folder)
    try:
        async with started(folder, integration, hidden, place=place) as adapter:
            if known is None or integration.network == "own":
                return [], {"INT-490"}
            empty = _digest(place)
            trials = Trials(folder, integration, adapter, known)
            await trials.run()
            if _digest(place) != empty:
                trials.fail("INT-195", "A hook wrote a file.")
            if any(secret in adapter.log for secret in known.secrets):
                trials.fail("INT-177", "What was entered stands on stderr.")
            return trials.failed, trials.shown | {"INT-490", "INT-177"}
    except Unready as unready:
        seen = "Its process did not start, or has other hooks or operations than its source."
        if unready.faults:
            seen = f"What it says first is wrong: {unready.faults[0].pointer} {unready.faults[0].message}."
        return [("INT-490", seen)], {"INT-490"}


def _permitted(folder: Path) -> Iterator[tuple[str, str]]:
    found, faults = confirmations(folder)
    if faults:
        yield "INT-521", f"permission.json: {faults[0].pointer or '/'} {faults[0].message}"
    elif not found:
        yield "INT-521", "There is no permission.json."


def _imports(source: bytes) -> Iterator[tuple[str, str]]:
    """Find what is imported of Headwater beside the SDK."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            allowed = name == "headwater.sdk" or name.startswith(("headwater.sdk.", "headwater.connectors."))
            if name.split(".")[0] == "headwater" and not allowed:
                yield "INT-491", f"Line {node.lineno} imports from another room of Headwater."  # type: ignore[attr-defined]


def _digest(folder: Path) -> bytes:
    """Digest the names and bytes of a folder's files."""
    total = sha256()
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    for path in sorted(files):
        total.update(f"{path}\0".encode() + (_read(path) or b""))
    return total.digest()


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(limits.MANIFEST_BYTES + 1)
    except OSError:
        return None
