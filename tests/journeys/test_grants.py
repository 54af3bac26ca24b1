"""Runs in whose name: a grant's cursors are its own, and the connector learns nothing of the grant."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from headwater.collect.plan import Authority
from headwater.host import Host
from headwater.joining.programs import CollectRequest, Watching
from headwater.settings import Settings

GUESTS = Path(__file__).parents[1] / "guests"
GRANT = "grant_5e471"


@pytest.fixture
def collect(tmp_path):
    """Collect under an authority and save a cursor; return the START that came, and the outcome."""
    host = Host(Settings(tmp_path / "config.toml", tmp_path / "state"))
    notes = tmp_path / "notes"
    notes.touch()

    def collecting(authority, cursor):
        command = [sys.executable, str(GUESTS / "notes_start.py"), str(notes), cursor]
        program = host.program_of((GUESTS / "manifest.json").read_bytes(), command)
        request = CollectRequest(program, authority=authority)
        outcome = asyncio.run(host.collect(request, Watching(lambda _event: None)))
        return notes.read_text().splitlines()[-1], outcome

    return collecting


@pytest.mark.clause("CP-400", "CP-401")
def test_a_grant_reads_and_advances_its_own_cursors(collect):
    """The global namespace and that of each grant are strangers to one another."""
    collect(None, '{"g":0}')
    collect(Authority("G1"), '{"s":0}')
    collect(Authority("G2"), '{"t":0}')
    start, _ = collect(Authority("G1"), '{"s":1}')
    assert json.loads(start)["state"]["alpha"] == {"s": 0}
    assert json.loads(collect(None, '{"g":1}')[0])["state"]["alpha"] == {"g": 0}
    assert json.loads(collect(Authority("G2"), "{}")[0])["state"]["alpha"] == {"t": 0}
    assert json.loads(collect(Authority("G1"), "{}")[0])["state"]["alpha"] == {"s": 1}


@pytest.mark.clause("CP-403", "CP-404")
def test_a_single_use_run_begins_with_nothing_and_leaves_nothing(collect):
    """Its state is null though others have cursors, and what it sends is not kept."""
    collect(None, '{"g":0}')
    start, outcome = collect(Authority("G1", single_use=True), '{"once":1}')
    assert json.loads(start)["state"] is None
    assert (outcome.verdict.status, outcome.decision.committed) == ("succeeded", ())
    assert json.loads(collect(None, "{}")[0])["state"]["alpha"] == {"g": 0}
    assert json.loads(collect(Authority("G1"), "{}")[0])["state"] is None


@pytest.mark.clause("CP-148")
def test_start_holds_nothing_of_the_grant(collect):
    """The grant decides what is asked for; its name is not passed on."""
    start, _ = collect(Authority(GRANT), "{}")
    again, _ = collect(Authority(GRANT), "{}")
    assert GRANT not in start + again
    assert json.loads(again).keys() == {"type", "run_id", "collection_mode", "scope", "state", "bindings"}
