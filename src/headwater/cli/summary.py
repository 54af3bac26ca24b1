"""A finished run, as a result and as sentences."""

from collections.abc import Iterable, Mapping
from typing import Any

from headwater.cli.output import clip, plain, table, typed
from headwater.collect.hints import SENTENCES, action_of
from headwater.collect.ports import Outcome

STREAM_COLUMNS = {
    "stream": "stream",
    "accepted": "new or changed",
    "unchanged": "unchanged",
    "deleted": "deleted",
    "rejected": "rejected",
    "gaps": "gaps",
}


def summary_of(outcome: Outcome, instance: str) -> dict[str, Any]:
    """Return the result of a run: its id, status, streams and checkpoints."""
    verdict, decision = outcome.verdict, outcome.decision
    result: dict[str, Any] = {
        "run_id": outcome.run_id,
        "instance": instance,
        "status": verdict.status,
        "cause": verdict.cause,
        "message": verdict.message,
        "streams": [
            {
                "stream": name,
                "accepted": tally.accepted,
                "unchanged": tally.unchanged,
                "deleted": tally.deleted,
                "rejected": tally.rejected,
                "gaps": tally.gaps,
            }
            for name, tally in outcome.tallies.items()
        ],
        "checkpoints": {
            "committed": list(decision.committed),
            "withheld": [
                {"stream": held.stream, "reason": held.reason, "message": held.message, "keys": list(held.keys)}
                for held in decision.withheld
            ],
        },
    }
    if outcome.facts.error is not None:
        result["connector_error"] = {**outcome.facts.error, "action": action_of(outcome.facts.error)}
    if (retried := outcome.retried) is not None:
        counts = {"tried": retried.tried, "healed": retried.healed}
        result["gaps_retried"] = {"run_id": retried.run_id, "status": retried.verdict.status, **counts}
    return result


def lines_of(result: Mapping[str, Any], *, next_command: str) -> Iterable[str]:
    """Say in sentences how a run ended, what committed and what to type next."""
    yield f"{result['instance']}: {result['status']}. {in_short(result)}"
    yield ""
    yield from (f"  {line}" for line in table(result["streams"], STREAM_COLUMNS, empty="No stream was in scope."))
    yield ""
    yield from explained(result["checkpoints"])
    if retried := result.get("gaps_retried"):
        tried, healed = f"{retried['tried']:,} open gap{'s' if retried['tried'] > 1 else ''}", f"{retried['healed']:,}"
        yield f"  Tried again:       {tried}; {healed} healed."
    yield f"  Next: {typed(next_command)}"


def in_short(result: Mapping[str, Any]) -> str:
    """Say in one line what came and what is missing."""
    totals = {name: sum(stream[name] for stream in result["streams"]) for name in STREAM_COLUMNS if name != "stream"}
    withheld = len(result["checkpoints"]["withheld"])
    records = "record" if totals["accepted"] == 1 else "records"
    parts = [f"{totals['accepted']:,} {records} new or changed", f"{totals['unchanged']:,} unchanged"]
    parts += [f"{totals[name]:,} {name}" for name in ("deleted", "rejected", "gaps") if totals[name]]
    parts += [f"{withheld} cursor{'s' if withheld > 1 else ''} withheld"] if withheld else []
    return ", ".join(parts) + "."


def explained(checkpoints: Mapping[str, Any]) -> Iterable[str]:
    """Say what became of each cursor."""
    if checkpoints["committed"]:
        yield f"  Cursors committed: {', '.join(checkpoints['committed'])}"
    for held in checkpoints["withheld"]:
        keys = ", ".join(clip(key, 40) for key in held.get("keys", [])[:3])
        yield f"  Cursor withheld:   {held['stream']}. {plain(held['message'])}{f' ({keys})' if keys else ''}"
    if not checkpoints["committed"] and not checkpoints["withheld"]:
        yield "  No cursor was sent."


def problems_of(result: Mapping[str, Any]) -> list[str]:
    """Return the lines that explain a failed run to a person."""
    lines = []
    if error := result.get("connector_error"):
        lines += [f"The connector says: {clip(error['message'], 200)}", f"What now: {SENTENCES[error['action']]}"]
    stored = sum(stream["accepted"] + stream["deleted"] for stream in result["streams"])
    kept = f"Stored before that, and kept: {stored:,} new or changed."
    return [*lines, kept, *(line.strip() for line in explained(result["checkpoints"]))]
