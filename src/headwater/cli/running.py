"""Running a collection from the command line: the display, the signals, and the verdict as an exit."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headwater.cli.output import Output, plain
from headwater.cli.summary import explained, lines_of, problems_of, summary_of
from headwater.collect.ports import Observer, Outcome, Respondent
from headwater.collect.recovery import Recovered
from headwater.collect.runs import Run
from headwater.errors import refuse
from headwater.events import Event
from headwater.host import CollectRequest, Host


def run(host: Host, output: Output, request: CollectRequest, respondent: Respondent | None) -> Outcome:
    """Run a collection and return how it ended; Ctrl-C cancels it and waits for its end."""
    with _watching(output) as observe:
        return asyncio.run(_collect(host, output, request, respondent, observe))


def report(output: Output, outcome: Outcome, instance: str, *, next_command: str = "") -> None:
    """Print a run that succeeded; raise `run_failed` or `interrupted` with the same members for any other."""
    result = summary_of(outcome, instance)
    explain = f"headwater runs explain {outcome.run_id}"
    if outcome.verdict.status == "succeeded":
        streams = [row["stream"] for row in result["streams"] if row["accepted"]]
        look = f"headwater records list {instance} {streams[0]}" if streams else "headwater streams list"
        command = next_command or (explain if outcome.decision.withheld else look)
        output.result(result, lambda: lines_of(result, next_command=command))
        return
    code = "interrupted" if outcome.verdict.cause == "cancelled" else "run_failed"
    if not output.is_json:
        result["explanation"] = problems_of(result)
    raise refuse(code, outcome.verdict.message, command=explain, **_beside(result))


def _beside(result: dict[str, Any]) -> dict[str, Any]:
    """Leave out the member that the failure itself has."""
    return {name: value for name, value in result.items() if name != "message"}


async def _collect(
    host: Host, output: Output, request: CollectRequest, respondent: Respondent | None, observe: Observer
) -> Outcome:
    loop = asyncio.get_running_loop()

    def started(run: Run) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError):
                loop.add_signal_handler(number, run.cancel)

    def recovered(orphan: Recovered) -> None:
        output.note(f"The run {orphan.run_id} was cut off before; what it had stored is kept.")
        decision = orphan.decision
        checkpoints = {
            "committed": decision.committed,
            "withheld": [{"stream": held.stream, "message": held.message} for held in decision.withheld],
        }
        for line in explained(checkpoints):
            output.note(plain(line))

    return await host.collect(request, observe=observe, respondent=respondent, started=started, recovered=recovered)


@contextmanager
def _watching(output: Output) -> Iterator[Observer]:
    if output.is_json or not sys.stderr.isatty():
        yield _unseen
        return
    from headwater.cli.live import display

    with display() as shown:
        yield shown


def _unseen(_event: Event) -> None:
    """Watch without a display."""
