"""Running the scheduler from the command line: its signals, what it tells, and its exit."""

import asyncio
import signal
from collections import Counter
from typing import Any

from headwater import clock
from headwater.cli.output import Output, plain, typed
from headwater.cli.summary import in_short, summary_of
from headwater.errors import refuse
from headwater.host import Host
from headwater.scheduler import Began, Ended, News, Refused, Scheduler

STOPPED = "The scheduler was stopped."
KEPT = "What was stored is kept."


class Reporter:
    """Tells a person what the scheduler does, line by line on stderr, and keeps count."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.counts = Counter(succeeded=0, failed=0, cancelled=0, refused=0)

    def __call__(self, news: News) -> None:
        """Take note of what happened. See `Scheduler`."""
        match news:
            case Began(instance, due):
                tries = f" again, after {due.failures} in a row that did not succeed" if due.failures else ""
                self.say(f"{instance}: started{tries}.")
            case Ended(instance, outcome):
                verdict = outcome.verdict
                self.counts[verdict.status] += 1
                self.say(f"{instance}: {verdict.status}. {in_short(summary_of(outcome, instance))}")
                if verdict.status != "succeeded":
                    self._output.note(f"    {plain(verdict.message)}")
                    self._output.note(f"    Next: {typed('headwater runs explain')} {outcome.run_id}")
            case Refused(instance, error):
                self.counts["refused"] += 1
                self.say(f"{instance or 'collect.toml'}: not started. {error.message}")

    def say(self, text: str) -> None:
        """Print a line with the time."""
        self._output.note(f"{clock.now().astimezone():%Y-%m-%d %H:%M:%S}  {plain(text)}")


class Roll(Reporter):
    """Keeps a row for each instance too, where each comes once."""

    def __init__(self, output: Output) -> None:
        super().__init__(output)
        self.rows: list[dict[str, Any]] = []
        self.failures = 0

    def __call__(self, news: News) -> None:
        """Take note of what happened. See `Scheduler`."""
        super().__call__(news)
        match news:
            case Ended(instance, outcome):
                verdict = outcome.verdict
                told = {"cause": verdict.cause, "message": verdict.message}
                self.rows.append({"instance": instance, "run_id": outcome.run_id, "status": verdict.status, **told})
                self.failures += verdict.status != "succeeded"
            case Refused(instance, error):
                told = {"cause": error.code, "message": error.message}
                self.rows.append({"instance": instance, "run_id": None, "status": "refused", **told})
                self.failures += error.code != "run_active"


def keep_schedules(host: Host, output: Output, at_once: int) -> None:
    """Run the scheduler until a signal stops it; raise `interrupted` where that was Ctrl-C."""
    reporter = Reporter(output)
    with host.scheduling():
        reporter.say("The scheduler is running. Ctrl-C stops it.")
        stopped_by = asyncio.run(_until_stopped(Scheduler(host, reporter, at_once), once=False))
    if stopped_by == signal.SIGINT:
        raise refuse("interrupted", STOPPED, safe=KEPT, runs=dict(reporter.counts))
    output.result({"runs": dict(reporter.counts)}, lambda: [STOPPED])


def run_due(host: Host, output: Output, at_once: int) -> None:
    """Run what is due now; raise `run_failed` where something failed, `interrupted` where a signal stopped it."""
    roll = Roll(output)
    with host.scheduling():
        stopped_by = asyncio.run(_until_stopped(Scheduler(host, roll, at_once), once=True))
    if stopped_by is not None:
        raise refuse("interrupted", STOPPED, safe=KEPT, runs=roll.rows)
    if roll.failures:
        message = f"{roll.failures} of {len(roll.rows)} did not succeed."
        raise refuse("run_failed", message, command="headwater runs list", runs=roll.rows)
    output.result({"runs": roll.rows}, lambda: [] if roll.rows else ["Nothing is due."])


async def _until_stopped(scheduler: Scheduler, *, once: bool) -> int | None:
    """Run a scheduler, and return the signal that stopped it."""
    stopped_by: list[int] = []

    def stop(number: int) -> None:
        stopped_by.append(number)
        scheduler.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    await (scheduler.once() if once else scheduler.keep())
    return stopped_by[0] if stopped_by else None
