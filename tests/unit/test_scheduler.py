"""The scheduler between two looks: what it tells once, what it holds back, and what it leaves alone."""

import asyncio
import shutil
from pathlib import Path

import apsw
import pytest

from headwater.host import Host
from headwater.scheduler import Began, Ended, Refused, Scheduler
from headwater.settings import Settings
from headwater.store.locks import exclusive

GUESTS = Path(__file__).parents[1] / "guests"


@pytest.fixture
def host(tmp_path):
    """A host with one instance, of a connector that always succeeds, that is due every minute."""
    folder = tmp_path / "good"
    folder.mkdir()
    for name in ("manifest.json", "good.sh"):
        shutil.copy(GUESTS / name, folder)
    (folder / "connector.toml").write_text('format = "headwater-connector/1"\ncommand = ["/bin/sh", "good.sh"]\n')
    host = Host(Settings(tmp_path / "config.toml", tmp_path / "state"))
    host.set_up("good/me", [], folder)
    host.instances.set_schedule("good/me", {"every": "1m"})
    with host.scheduling():
        yield host


def looks(host, times, between=lambda: None, stopped=False):
    """Let one scheduler look a few times, and return what it told."""
    news = []

    async def looking():
        scheduler = Scheduler(host, news.append)
        if stopped:
            scheduler.stop()
        for _ in range(times):
            await scheduler.once()
            between()

    asyncio.run(looking())
    return news


def test_a_run_is_told_from_its_begin_to_its_end(host):
    """With what it is for, and how it ended; until the next is due there is no other."""
    began, ended = looks(host, 2)
    assert isinstance(began, Began)
    assert isinstance(ended, Ended)
    assert (began.instance, began.due.failures, ended.outcome.verdict.status) == ("good/me", 0, "succeeded")


def test_a_file_that_cannot_be_read_is_told_once(host):
    """However often it is looked at; nothing is started, and nothing is forgotten."""
    text = host.settings.collect_path.read_text()
    host.settings.collect_path.write_text("oops [")
    (told,) = looks(host, 3)
    assert (told.instance, told.error.code) == ("", "invalid_configuration")
    host.settings.collect_path.write_text(text)
    assert len(looks(host, 1)) == 2


def test_an_instance_that_is_being_collected_is_told_once_and_held_back(host):
    """It is not tried at each look."""
    with exclusive(host.settings.locks_dir / "good--me.lock"):
        (told,) = looks(host, 2)
    assert isinstance(told, Refused)
    assert told.error.code == "run_active"


def test_a_run_that_left_no_trace_is_not_repeated_at_once(host):
    """Where the store does not show a run, as after a clock was set, the next still does not follow on its heels."""

    def forget():
        connection = apsw.Connection(str(host.settings.database_path))
        connection.execute("UPDATE runs SET started_at = '2077-01-01T00:00:00.000Z'")
        connection.close()

    assert len(looks(host, 3, between=forget)) == 2


def test_a_scheduler_that_was_stopped_starts_nothing(host):
    """However much is due."""
    assert looks(host, 1, stopped=True) == []
