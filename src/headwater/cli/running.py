"""Running a collection from the command line: the display, the signals, and the verdict as an exit."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headwater.catalog.instances import Instance
from headwater.cli.answers import Terminal
from headwater.cli.output import Output, plain, typed
from headwater.cli.summary import explained, lines_of, problems_of, summary_of
from headwater.collect.gaps import Turn
from headwater.collect.ports import Observer, Outcome, Respondent
from headwater.collect.recovery import Recovered
from headwater.collect.runs import Run
from headwater.errors import refuse
from headwater.events import BrowserStarted, Event, Unconfined
from headwater.host import Host
from headwater.joining.programs import CollectRequest, Watching

_REACH = {"network": "the network", "filesystem": "your files"}


def run(
    host: Host, output: Output, request: CollectRequest, respondent: Respondent | None, *, inbox: bool = False
) -> Outcome:
    """Run a collection and return how it ended; Ctrl-C cancels it and waits for its end."""
    with _watching(output, respondent, inbox=inbox) as watching:
        return asyncio.run(host.collect(request, watching))


def collect_now(host: Host, output: Output, name: str) -> None:
    """Collect everything from an instance, and print how that ended."""
    host.expect_to_collect()
    program = host.program(host.set_up(name, ()))
    respondent = Terminal.here()
    outcome = run(host, output, CollectRequest(program), respondent, inbox=respondent is not None)
    report(output, outcome, program.name)


def retry_gaps(host: Host, output: Output, instance: Instance, turn: Turn) -> list[Outcome]:
    """Try an instance's gaps again, a page a run, until none is left or a run does not succeed."""
    request = CollectRequest(host.program(instance))
    outcomes: list[Outcome] = []
    with _watching(output, Terminal.here()) as watching:
        while not outcomes or outcomes[-1].verdict.status == "succeeded":
            outcome = asyncio.run(host.retry_gaps(request, turn, watching))
            if outcome is None:
                break
            outcomes.append(outcome)
    return outcomes


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


@contextmanager
def _watching(output: Output, respondent: Respondent | None, *, inbox: bool = False) -> Iterator[Watching]:
    """Follow a run at the terminal: what it does is shown, and a signal cancels it."""

    def started(run: Run) -> None:
        loop = asyncio.get_running_loop()
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

    if output.is_json or not sys.stderr.isatty():
        yield Watching(_warning(output, _unseen), respondent, started, recovered, inbox)
        return
    from headwater.cli.live import display

    with display() as shown:
        yield Watching(_warning(output, shown), respondent, started, recovered, inbox)


def _warning(output: Output, shown: Observer) -> Observer:
    """Tell a person what nothing keeps a connector or its browser from, and show the rest."""

    def observe(event: Event) -> None:
        if isinstance(event, BrowserStarted) and not event.is_sandboxed:
            output.note("The browser runs without its sandbox: Chromium has none for root.")
        if isinstance(event, BrowserStarted) and not event.is_confined:
            output.note("Nothing on this machine keeps the browser, which the connector drives, from your files.")
        if isinstance(event, Unconfined):
            names = " and ".join(_REACH[name] for name in event.bindings)
            output.note(f"Nothing on this machine keeps the connector from {names}, though it declares no use of it.")
            output.note(f"  Next: {typed('headwater setup check')}")
        shown(event)

    return observe


def _unseen(_event: Event) -> None:
    """Watch without a display."""
