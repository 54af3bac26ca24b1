"""The forty scenarios played by a real child, through the host, into SQLite: the table holds there as well."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from vectors.notation import Player, lines_of
from vectors.scenarios import EACH

from headwater.collect.plan import PROACTIVE, Authority

play = Player()
OLD = "; ".join(f"S {stream}={stream[0]}0" for stream in ("alpha", "beta", "gamma"))


def sent(script: str, kind: str) -> list[dict]:
    return [line for line in map(json.loads, lines_of(script)) if line["type"] == kind]


@pytest.mark.parametrize("row", EACH)
def test_a_scenario_ends_for_real_as_its_row_says(stage, row):
    """Verdict, cursors, reasons, facts and counts are those of the table and of the session, and nothing stays open."""
    options = row.play or {}
    real = stage(row.manifest)
    outcome = real.play(row.script, row.terminal, **options)
    pure = play(row.manifest, row.script, row.terminal, **options)
    assert (outcome.verdict, outcome.decision) == (pure.verdict, pure.decision)
    heard = replace(pure.session.facts, error=None) if row.status == "cancelled" else pure.session.facts
    assert outcome.facts == heard
    committed = dict(word.split("=") for word in row.committed.split())
    reasons = {word.split(":")[0]: word.split(":")[1].partition("[")[0] for word in row.withheld.split()}
    assert real.kept() == (row.status, sorted(committed), reasons)
    assert real.cursors(options.get("authority", PROACTIVE).namespace or "") == committed
    assert real.ask("SELECT count(*) FROM checkpoints") == [(len(committed),)]
    assert real.ask("SELECT count(*) FROM staged") == [(0,)]
    records, gaps = sent(row.script, "RECORD"), sent(row.script, "DETAIL_GAP")
    assert sum(tally.accepted for tally in outcome.tallies.values()) == len(records)
    assert real.ask("SELECT count(*) FROM records") == [(len(records),)]
    assert real.ask("SELECT count(*) FROM gaps WHERE status = 'pending'") == [(len(gaps),)]
    assert real.ask("SELECT count(*) FROM receipts") == [(0,)]


@pytest.mark.parametrize("row", EACH)
def test_a_scenario_moves_only_its_cursors_over_older_ones(stage, row):
    """Played over committed cursors, START brings those in scope, and what the row withholds keeps its old value."""
    options = row.play or {}
    authority = options.get("authority", PROACTIVE)
    real = stage(row.manifest)
    streams = play.declared(row.manifest).streams.values()
    own = [stream.name for stream in streams if not (stream.state_stream or stream.parent_streams)]
    before = authority if authority.namespace else PROACTIVE
    real.play("; ".join(f"S {name}=old" for name in own), scope=" ".join(own), authority=before)
    old = real.cursors(before.namespace)
    assert old == dict.fromkeys(own, "old")
    real.play(row.script, row.terminal, **options)
    scope = {entry["name"] for entry in real.start["scope"]["streams"]}
    told = {name: {"at": cursor} for name, cursor in old.items() if name in scope}
    assert real.start["state"] == (None if authority.single_use else told)
    assert real.cursors(before.namespace) == {**old, **dict(word.split("=") for word in row.committed.split())}


@pytest.mark.clause("CP-404")
def test_row_37_starts_without_a_state_and_leaves_every_cursor_alone(stage):
    """A single use is told nothing and keeps nothing, whatever is committed beside it."""
    real = stage("FLAT")
    real.play(OLD)
    real.play("S alpha=a1", authority=Authority(single_use=True))
    assert real.start["state"] is None
    assert real.cursors() == {"alpha": "a0", "beta": "b0", "gamma": "g0"}
    assert real.kept() == ("succeeded", [], {"alpha": "single_use"})


@pytest.mark.clause("CP-401")
def test_row_38_moves_the_cursors_of_its_grant_alone(stage):
    """Two grants and the global namespace each keep their own, before and after."""
    real = stage("FLAT")
    real.play("S alpha=g0; S beta=g0")
    real.play("S alpha=s0; S beta=s0", authority=Authority("G1"))
    real.play("S alpha=t0; S beta=t0", authority=Authority("G2"))
    real.play("S alpha=a1; F beta; S beta=b1", "scf", authority=Authority("G1"))
    assert real.start["state"] == {"alpha": {"at": "s0"}, "beta": {"at": "s0"}}
    assert real.cursors("grant:G1") == {"alpha": "a1", "beta": "s0"}
    assert real.cursors() == {"alpha": "g0", "beta": "g0"}
    assert real.cursors("grant:G2") == {"alpha": "t0", "beta": "t0"}
    real.play("S alpha=a1; F beta; S beta=b1", "scf")
    assert real.cursors() == {"alpha": "a1", "beta": "g0"}
    assert real.cursors("grant:G1") == {"alpha": "a1", "beta": "s0"}


@pytest.mark.clause("CP-450", "CP-451", "CP-452")
@pytest.mark.parametrize("terminal", ["ok", "scf"])
def test_row_39_keeps_what_was_written_before_the_write_that_failed(stage, terminal):
    """Staged three, committed one, failing beta: the run failed, and the next one goes on from what is there."""
    real = stage("FLAT")
    real.play(OLD)
    real.ask(
        "CREATE TRIGGER failing BEFORE UPDATE ON checkpoints WHEN new.stream = 'beta'"
        " BEGIN SELECT raise(ABORT, 'no'); END"
    )
    failed = terminal == "scf"
    outcome = real.play("S alpha=a1; S beta=b1; S gamma=g1" + "; F gamma" * failed, terminal)
    left = {"beta": "write_failed", "gamma": "stream_failed" if failed else "not_reached"}
    assert (outcome.verdict.status, outcome.verdict.cause) == ("failed", "checkpoint_write_failed")
    assert outcome.decision.committed == ("alpha",)
    assert {held.stream: held.reason for held in outcome.decision.withheld} == left
    assert real.kept() == ("failed", ["alpha"], left)
    assert real.cursors() == {"alpha": "a1", "beta": "b0", "gamma": "g0"}
    real.ask("DROP TRIGGER failing")
    real.play("S alpha=a2; S beta=b2; S gamma=g2")
    assert real.start["state"] == {"alpha": {"at": "a1"}, "beta": {"at": "b0"}, "gamma": {"at": "g0"}}
    assert real.cursors() == {"alpha": "a2", "beta": "b2", "gamma": "g2"}


COMBO = "S alpha=a1; S beta=b1; G beta→– b9; S threads=t1; S albums=a1; C photos→albums [p1 ¦ p1]"
STAGED = "SELECT 1 FROM staged GROUP BY run HAVING count(*) = 4 AND (SELECT count(*) FROM gaps) = 1"


@pytest.mark.clause("CP-460", "CP-463", "CP-464", "CP-466")
def test_row_40_settles_a_run_whose_host_was_killed(stage):
    """After kill -9 of the host, the next run commits alpha and threads; beta has a gap, albums is a detail parent."""
    real = stage("COMBO")
    host = real.play_until(COMBO, STAGED)
    host.kill()
    host.communicate(timeout=60)
    assert real.cursors() == {}
    real.play("", scope="alpha")
    assert real.ask("SELECT status, cause FROM runs ORDER BY id") == [
        ("abandoned", "host_gone"),
        ("succeeded", "succeeded"),
    ]
    assert real.fates(1) == (["alpha", "threads"], {"beta": "pending_gap", "albums": "detail_parent"})
    assert real.cursors() == {"alpha": "a1", "threads": "t1"}
    assert real.start["state"] == {"alpha": {"at": "a1"}}


@pytest.mark.clause("CP-461", "CP-209")
def test_row_40_commits_nothing_where_it_is_the_connector_that_dies(stage):
    """The same messages and a dead connector are no restart."""
    real = stage("COMBO")
    host = real.play_until(COMBO, STAGED)
    with open(f"/proc/{host.pid}/task/{host.pid}/children") as file:
        children = file.read().split()
    (child,) = (each for each in children if b"plays.py" in Path(f"/proc/{each}/cmdline").read_bytes())
    os.kill(int(child), signal.SIGKILL)
    host.communicate(timeout=60)
    assert host.returncode == 1
    assert real.kept() == ("failed", [], dict.fromkeys(["albums", "alpha", "beta", "threads"], "no_done"))
    real.play("", scope="alpha")
    assert real.start["state"] is None
