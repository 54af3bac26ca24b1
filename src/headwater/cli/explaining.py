"""A run in sentences: what it saw and kept, what became of each cursor and why, and what to do now."""

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.cli.output import clip, plain, table, typed
from headwater.collect.hints import SENTENCES, action_of


def explained(run: Mapping[str, Any]) -> Iterable[str]:
    """Explain a run, as `Reader.run` returns it."""
    columns = {"stream": "stream", "seen": "seen", "kept": "kept", "unchanged": "unchanged", "deleted": "deleted"}
    columns |= {"rejected": "rejected", "gaps": "gaps"}
    yield f"{run['run_id']} of {run['instance']}: {run['status']}. {plain(run['message'])}"
    yield from (f"  {line}" for line in table(run["streams"], columns, empty="No stream was in scope."))
    yield ""
    yield from _cursors(run["checkpoints"])
    yield from _measured(run)
    yield from _missing(run)
    yield from _words(run)


def _cursors(checkpoints: Mapping[str, Any]) -> Iterable[str]:
    for stream in checkpoints["committed"]:
        yield f"Cursor of {stream}: committed. The next run goes on from there."
    for held in checkpoints["withheld"]:
        yield f"Cursor of {held['stream']}: withheld ({held['reason']}). {plain(held['message'])}"
        for key in held.get("keys", []):
            yield f"    {clip(key, 100)}"
    for row in checkpoints["covered"]:
        yield f"{row['stream']} rides on the cursor of {row['by']}: {row['status'].replace('_', ' ')}."
    if not checkpoints["committed"] and not checkpoints["withheld"]:
        yield "No cursor was sent."


def _measured(run: Mapping[str, Any]) -> Iterable[str]:
    """Say what the run counted of itself."""
    for report in run["facts"].get("coverage", []):
        counts = ", ".join(
            f"{report[name]:,} {name}" for name in ("required", "hydrated", "gaps", "skipped") if name in report
        )
        missing = f"{len(report['unaccounted'])} unaccounted"
        yield f"Details of {report['parent']} in {report['stream']}: {counts}, {missing}."
    for kind, count in run["facts"].get("extensions", {}).items():
        yield f"Not of the protocol, but of the connector's compatibility: {count:,} {kind}."
    for stream, counts in run["facts"].get("evidence", {}).items():
        yield f"{stream} by its own count: {_evidence(counts)}"


def _missing(run: Mapping[str, Any]) -> Iterable[str]:
    """Say what is not there, or is there again."""
    if run["healed"]:
        yield f"Gaps that healed, because their record came: {run['healed']:,}"
    if run["gaps"]:
        yield "Gaps that are still open:"
        yield from (
            f"    {gap['stream']} {clip(gap['key'] or gap['locator'], 60)}: {clip(gap['reason'], 60)}"
            for gap in run["gaps"][:20]
        )
    for skip in run["facts"].get("skips", [])[:20]:
        yield _skipped(skip)


def _skipped(skip: Mapping[str, Any]) -> str:
    """Say what was skipped, or which slice a page proved, and nothing beyond it (CP-136)."""
    stream = plain(skip["stream"] or "something")
    if (page := skip["continuation"]) is None:
        return f"Skipped {stream}: {clip(skip['message'] or skip['reason'], 120)}"
    bounds = f"{clip(page['slice_start'], 40)} to {clip(page['slice_end'], 40)}"
    counts = f"{page['covered']:,} of {page['considered']:,}"
    return f"{stream} from {bounds}: {counts} covered. What lies outside is not claimed; more remains."


def _evidence(counts: Mapping[str, int]) -> str:
    """Say what a stream's evidence covers, and never more (CP-631, CP-632)."""
    covered, missing = counts["emitted"] + counts["unchanged"], counts["gapped"] + counts["unaccounted"]
    if not missing:
        return f"{covered:,} of {counts['considered']:,} covered."
    parts = f"{counts['gapped']:,} gapped, {counts['unaccounted']:,} unaccounted"
    return f"{covered:,} of {counts['considered']:,} covered, {parts}: not complete."


def _words(run: Mapping[str, Any]) -> Iterable[str]:
    error = run["facts"].get("error")
    if error:
        yield f"The connector says: {clip(error['message'], 200)}"
        yield f"What now: {SENTENCES[action_of(error)]}"
    if any(stream["rejected"] for stream in run["streams"]):
        yield f"Refused records: {typed('headwater')} rejections list --run {run['run_id']}"
    if run["stderr_tail"] and run["status"] != "succeeded":
        yield "The end of the connector's stderr:"
        yield from (f"    {plain(line)}" for line in run["stderr_tail"].splitlines()[-12:])
