"""The live display of a run: one line a stream, redrawn in place. Only where a person watches."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from headwater.cli.output import clip
from headwater.events import Answered, Asked, BatchStored, Event, Progressed, RunStarted


class Display:
    """Watches a run and draws it."""

    def __init__(self, console: Console) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.fields[stream]}", markup=False), BarColumn(28))
        more = (MofNCompleteColumn(), TextColumn("{task.fields[note]}", style="dim", markup=False), TimeElapsedColumn())
        self._progress = Progress(*columns, *more, console=console, transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, event: Event) -> None:
        """Take note of an event. See `Observer`."""
        match event:
            case RunStarted(streams=streams):
                for stream in streams:
                    self._tasks[stream] = self._progress.add_task("", total=None, stream=stream, note="")
                self._progress.start()
            case BatchStored(tallies=tallies):
                for stream, tally in tallies.items():
                    if stream in self._tasks:
                        self._progress.update(self._tasks[stream], completed=tally.seen)
            case Progressed(stream=str(stream), text=text, total=total) if stream in self._tasks:
                self._progress.update(self._tasks[stream], total=total, note=clip(text, 40))
            case Asked():
                self._progress.stop()
            case Answered():
                self._progress.start()

    def close(self) -> None:
        """Take the display away."""
        self._progress.stop()


@contextmanager
def display() -> Iterator[Display]:
    """Show a live display on stderr for a while."""
    shown = Display(Console(stderr=True))
    try:
        yield shown
    finally:
        shown.close()
