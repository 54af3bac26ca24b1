"""What a person is told on the way of a run."""

import pytest

from headwater.cli.output import Output
from headwater.cli.running import _warning
from headwater.events import BatchStored, Unconfined


@pytest.mark.parametrize(
    ("bindings", "words"),
    [(("network",), "the network,"), (("filesystem",), "your files,"), (("network", "filesystem"), "network and your")],
)
def test_a_connector_that_nothing_holds_is_warned_of(capsys, bindings, words):
    """What it could reach though it does not say so, and where to look; the display sees the event too."""
    seen = []
    observe = _warning(Output("human"), seen.append)
    for event in (Unconfined("run_1", bindings), BatchStored("run_1")):
        observe(event)
    warning, following = capsys.readouterr().err.splitlines()
    assert words in warning
    assert following.endswith("headwater setup check")
    assert len(seen) == 2


def test_a_program_is_not_bothered(capsys):
    """Under `--output json` stderr stays empty while a run succeeds."""
    _warning(Output("json"), lambda _event: None)(Unconfined("run_1", ("network",)))
    assert capsys.readouterr() == ("", "")
