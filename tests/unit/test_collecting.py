"""What follows a run that succeeded does not make a failure of it."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from headwater.catalog.instances import Instance
from headwater.host import Host
from headwater.joining import collecting
from headwater.joining.programs import CollectRequest, Watching
from headwater.settings import Settings

GAPPY = Path(__file__).parents[1] / "guests" / "gappy"


def test_a_retry_that_cannot_be_started_leaves_the_run_before_it_a_success(tmp_path, monkeypatch):
    """The connector's program is gone when its gaps have their turn: its run says so, and the first one stands."""
    provider = tmp_path / "provider.json"
    provider.write_text('{"p1": "here", "p2": "busy"}')
    host = Host(Settings(tmp_path / "config.toml", tmp_path / "state"))
    instance = Instance("gappy/me", {"provider": str(provider)}, folder=GAPPY)
    request = CollectRequest(host.program(instance))

    def collect():
        return asyncio.run(host.collect(request, Watching(lambda _event: None)))

    assert collect().verdict.status == "succeeded"
    database = tmp_path / "state" / "headwater.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE gaps SET due_at = '2000-01-01T00:00:00.000Z'")
    provider.write_text('{"p1": "here"}')
    launch = collecting._launch

    def gone(program, plan, *rest):
        made = launch(program, plan, *rest)
        return replace(made, command=[str(tmp_path / "gone")]) if plan.retries else made

    monkeypatch.setattr(collecting, "_launch", gone)
    outcome = collect()
    assert (outcome.verdict.status, outcome.retried) == ("succeeded", None)
    with closing(sqlite3.connect(database)) as connection:
        ends = connection.execute("SELECT status, cause FROM runs ORDER BY id").fetchall()
    assert ends == [("succeeded", "succeeded"), ("succeeded", "succeeded"), ("failed", "not_started")]
