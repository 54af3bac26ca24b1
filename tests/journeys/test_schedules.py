"""Collecting on a schedule, as a person does it: commands, a scheduler that runs, and signals that stop it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import apsw
import pytest

from headwater.catalog.folders import BUNDLED

GUESTS = Path(__file__).parents[1] / "guests"
OWED = ["--cron", "0 0 1 1 *", "--zone", "UTC"]
NEW_YEARS = re.compile(r"since = \S+")


class Scheduled:
    """A Headwater with guests for connectors, and its schedulers."""

    def __init__(self, headwater):
        self.headwater = headwater
        self.config = headwater.place / "collect.toml"

    def add(self, name, guest, *words, bindings=("filesystem",)):
        """Make a connector of a guest, and an instance of it."""
        folder = self.headwater.place / name
        folder.mkdir()
        manifest = json.loads((GUESTS / "manifest.json").read_text())
        manifest["connector_id"] = f"https://connectors.example/{name}"
        manifest["runtime_requirements"] = {"bindings": {binding: {"required": True} for binding in bindings}}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        command = json.dumps(["/bin/sh", str(GUESTS / guest), *words])
        (folder / "connector.toml").write_text(f'format = "headwater-connector/1"\ncommand = {command}\n')
        assert self.type("instances", "add", f"{name}/me", "--from", str(folder)).status == 0

    def set(self, name, *schedule):
        """Set a schedule, and return how it stands."""
        return self.type("collect", "schedule", "set", f"{name}/me", *schedule).result

    def owe(self, name):
        """Set a schedule whose occurrences of the last years were all missed."""
        self.set(name, *OWED)
        before, table, after = self.config.read_text().partition(f'[instances."{name}/me".schedule]')
        self.config.write_text(before + table + NEW_YEARS.sub("since = 2020-01-01T00:00:00Z", after, count=1))

    def type(self, *words):
        return self.headwater.type(*words)

    def once(self, *words):
        """Run what is due."""
        return self.type("collect", "schedule", "run", "--once", *words)

    def list(self):
        """Return how the schedules stand, by instance."""
        rows = self.type("collect", "schedule", "list").result["schedules"]
        return {row["instance"]: row for row in rows}

    def runs(self):
        """Return what became of each run, oldest first."""
        rows = self.type("runs", "list").result["items"]
        return [(row["instance"], row["status"]) for row in reversed(rows)]

    def pass_time(self, **time):
        """Let what the database says of past runs be longer ago."""
        connection = apsw.Connection(str(self.headwater.state / "headwater.db"))
        for row, *texts in connection.execute("SELECT id, started_at, ended_at FROM runs").fetchall():
            moments = [datetime.fromisoformat(text) - timedelta(**time) if text else None for text in texts]
            earlier = [
                moment and moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") for moment in moments
            ]
            connection.execute("UPDATE runs SET started_at = ?, ended_at = ? WHERE id = ?", (*earlier, row))
        connection.close()

    @contextmanager
    def running(self, *words):
        """Run a scheduler for a while, and have its process and what it tells."""
        where = ["--config", str(self.headwater.place / "config.toml"), "--state-dir", str(self.headwater.state)]
        command = [sys.executable, "-m", "headwater", *where, "collect", "schedule", "run", *words]
        environment = {"HOME": str(self.headwater.place), "PATH": os.environ["PATH"], "TZ": "UTC"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes) as process:
            try:
                hear(process, "The scheduler is running")
                yield process
            finally:
                process.kill()


def hear(process, words):
    """Wait until a scheduler tells something, and return what it told until then."""
    heard = []
    for line in process.stderr:
        heard.append(line)
        if words in line:
            return "".join(heard)
    raise AssertionError(f"The scheduler never said {words!r}: {''.join(heard)}")


def stop(process, number):
    """Stop a scheduler with a signal, and return its exit status."""
    process.send_signal(number)
    return process.wait(60)


@pytest.fixture
def scheduled(headwater):
    return Scheduled(headwater)


@pytest.fixture
def ready(headwater):
    """Make named pipes that a guest tells of its start, and wait at one for it."""
    pipes = {}

    def pipe(name):
        pipes[name] = headwater.place / f"{name}.fifo"
        os.mkfifo(pipes[name])
        return str(pipes[name])

    def wait(name):
        assert pipes[name].read_text() == "ready\n"

    pipe.wait = wait
    return pipe


def test_a_schedule_is_set_paused_resumed_and_removed(scheduled):
    """Each command says how the schedule stands, and `list` shows the same."""
    scheduled.add("good", "good.sh")
    row = scheduled.set("good", "--cron", "0 7 * * *", "--zone", "Europe/Zurich", "--jitter", "5m")
    assert (row["cron"], row["zone"], row["jitter"], row["paused"]) == ("0 7 * * *", "Europe/Zurich", "5m", False)
    assert row["next_at"] > datetime.now().isoformat()
    assert scheduled.list() == {"good/me": row}
    paused = scheduled.type("collect", "schedule", "pause", "good/me").result
    assert paused == {**row, "paused": True, "next_at": None}
    assert scheduled.type("collect", "schedule", "resume", "good/me").result == row
    assert scheduled.type("instances", "list").result["instances"][0]["connector"] == "good"
    assert scheduled.type("collect", "schedule", "remove", "good/me").status == 0
    assert scheduled.list() == {}
    for command in ("remove", "pause", "resume"):
        assert scheduled.type("collect", "schedule", command, "good/me").failure["code"] == "not_found"


@pytest.mark.parametrize(
    "schedule",
    [
        [],
        ["--every", "30s"],
        ["--every", "6h", "--cron", "0 7 * * *"],
        ["--every", "6h", "--zone", "UTC"],
        ["--cron", "0 7 * * *", "--zone", "Nowhere"],
        ["--cron", "0 0 30 2 *"],
        ["--every", "6h", "--jitter", "1d"],
    ],
)
def test_a_schedule_that_does_not_fit_is_refused_and_changes_nothing(scheduled, schedule):
    """The file has the bytes that it had."""
    scheduled.add("good", "good.sh")
    before = scheduled.config.read_bytes()
    answer = scheduled.type("collect", "schedule", "set", "good/me", *schedule)
    assert (answer.status, answer.failure["code"]) == (2, "invalid_schedule")
    assert scheduled.config.read_bytes() == before


def test_an_instance_may_be_called_like_the_command(scheduled):
    """A name has a slash, and so `collect schedule/me` is a run."""
    scheduled.add("schedule", "good.sh")
    assert scheduled.type("collect", "schedule/me").result["instance"] == "schedule/me"


def test_what_was_missed_for_years_is_caught_up_by_one_run(scheduled):
    """And then nothing is due until the next occurrence."""
    scheduled.add("good", "good.sh")
    scheduled.owe("good")
    (row,) = scheduled.once().result["runs"]
    assert (row["instance"], row["status"]) == ("good/me", "succeeded")
    assert scheduled.once().result == {"runs": []}
    assert scheduled.list()["good/me"]["next_at"].endswith("-01-01T00:00:00.000Z")
    assert scheduled.runs() == [("good/me", "succeeded")]


def test_a_run_that_failed_waits_before_it_is_tried_again(scheduled):
    """5 minutes after its end, then 10; a success of the owner's own ends that."""
    marker = scheduled.headwater.place / "mended"
    guest = f"test -e {marker} && exec /bin/sh {GUESTS / 'good.sh'}; exit 3"
    scheduled.add("torn", "good.sh")
    (scheduled.headwater.place / "torn" / "connector.toml").write_text(
        f'format = "headwater-connector/1"\ncommand = ["/bin/sh", "-c", "{guest}"]\n'
    )
    scheduled.owe("torn")
    for failures in (1, 2):
        answer = scheduled.once()
        assert (answer.status, answer.failure["code"]) == (1, "run_failed")
        assert [row["status"] for row in answer.failure["runs"]] == ["failed"]
        assert scheduled.list()["torn/me"]["failures"] == failures
        scheduled.pass_time(minutes=4 * failures)
        assert scheduled.once().result == {"runs": []}
        scheduled.pass_time(minutes=failures)
    marker.touch()
    assert scheduled.type("collect", "torn/me").status == 0
    assert scheduled.once().result == {"runs": []}
    assert scheduled.list()["torn/me"]["failures"] == 0


def test_one_schedule_that_cannot_run_does_not_stop_the_others(scheduled):
    """One that is gone, and a schedule that does not fit, are told; one that may ask its owner runs."""
    for name in ("good", "gone", "wrong"):
        scheduled.add(name, "good.sh")
    scheduled.add("asks", "good.sh", bindings=("filesystem", "interactive"))
    for name in ("good", "gone", "wrong", "asks"):
        scheduled.owe(name)
    (scheduled.headwater.place / "gone" / "manifest.json").unlink()
    text = scheduled.config.read_text()
    scheduled.config.write_text(text.replace('wrong/me".schedule]\n', 'wrong/me".schedule]\nevery = "6h"\n'))
    answer = scheduled.once()
    rows = {row["instance"]: (row["status"], row["cause"]) for row in answer.failure["runs"]}
    assert rows == {
        "good/me": ("succeeded", "succeeded"),
        "asks/me": ("succeeded", "succeeded"),
        "gone/me": ("refused", "invalid_input"),
        "wrong/me": ("refused", "invalid_schedule"),
    }
    scheduled.type("collect", "schedule", "set", "asks/me", "--cron", "0 0 1 1 *")
    scheduled.type("collect", "schedule", "pause", "gone/me")
    assert [row["instance"] for row in scheduled.once().failure["runs"]] == ["wrong/me"]
    faults = {name: row["fault"] and row["fault"]["code"] for name, row in scheduled.list().items()}
    assert faults == {name: cause if status == "refused" else None for name, (status, cause) in rows.items()}


def test_a_running_scheduler_takes_up_a_schedule_and_runs_it_again(scheduled):
    """The demo's connector, set while the scheduler runs: at once, and again when its interval has passed."""
    provider = [sys.executable, str(BUNDLED / "demo" / "provider.py"), "--round", "0"]
    with subprocess.Popen(provider, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        url = json.loads(process.stdout.readline())["base_url"]
        assert scheduled.type("instances", "add", "demo/me", "--set", f"base_url={url}").status == 0
        with scheduled.running() as scheduler:
            scheduled.set("demo", "--every", "1m")
            assert "demo/me: succeeded." in hear(scheduler, "demo/me: succeeded.")
            scheduled.pass_time(minutes=1)
            assert "0 records new or changed" in hear(scheduler, "demo/me: succeeded.")
            assert stop(scheduler, signal.SIGTERM) == 0
            assert scheduler.stdout.read() == "The scheduler was stopped.\n"
        process.terminate()
    assert scheduled.runs()[:2] == [("demo/me", "succeeded")] * 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)])
def test_a_signal_cancels_what_runs(scheduled, ready, number, status):
    """The run is cancelled, no cursor moves, nothing stays behind, and the run is owed again after its wait."""
    scheduled.add("waits", "waits.sh", ready("waits"))
    scheduled.owe("waits")
    with scheduled.running() as scheduler:
        ready.wait("waits")
        assert stop(scheduler, number) == status
        assert "waits/me: cancelled." in scheduler.stderr.read()
    assert scheduled.runs() == [("waits/me", "cancelled")]
    assert scheduled.headwater.cursors("waits/me") == {}
    assert scheduled.headwater.left_behind() == []
    assert scheduled.list()["waits/me"]["failures"] == 1


def test_no_more_runs_at_once_than_allowed(scheduled, ready):
    """The third waits for its turn, and is not started when the scheduler stops."""
    for name in ("one", "two", "three"):
        scheduled.add(name, "waits.sh", ready(name))
        scheduled.owe(name)
    with scheduled.running("--at-once", "2") as scheduler:
        told = hear(scheduler, "started") + hear(scheduler, "started")
        begun = re.findall(r"(\w+)/me: started", told)
        for name in begun:
            ready.wait(name)
        assert stop(scheduler, signal.SIGTERM) == 0
    assert sorted(scheduled.runs()) == sorted((f"{name}/me", "cancelled") for name in begun)


def test_there_is_one_scheduler_and_an_instance_runs_once(scheduled, ready):
    """A second scheduler is refused; an instance that its owner collects is passed over, and said so."""
    scheduled.add("waits", "waits.sh", ready("waits"))
    scheduled.owe("waits")
    with scheduled.running() as scheduler:
        ready.wait("waits")
        answer = scheduled.once()
        assert (answer.status, answer.failure["code"]) == (1, "run_active")
        assert "scheduler" in answer.failure["message"]
        stop(scheduler, signal.SIGTERM)
    scheduled.pass_time(hours=1)
    words = scheduled.headwater.words("collect", "waits/me")
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as collecting:
        ready.wait("waits")
        scheduled.pass_time(hours=1)
        (row,) = scheduled.once().result["runs"]
        assert (row["status"], row["cause"]) == ("refused", "run_active")
        collecting.terminate()
    assert len(scheduled.runs()) == 2


def test_a_scheduler_that_was_killed_starts_nothing_twice(scheduled, ready):
    """The run that it left behind counts as a try; after its wait it is settled, and the next one starts."""
    scheduled.add("waits", "waits.sh", ready("waits"))
    scheduled.owe("waits")
    with scheduled.running() as scheduler:
        ready.wait("waits")
        stop(scheduler, signal.SIGKILL)
    assert scheduled.once().result == {"runs": []}
    row = scheduled.list()["waits/me"]
    assert (row["last_status"], row["failures"]) == ("running", 0)
    scheduled.pass_time(minutes=5)
    with scheduled.running() as scheduler:
        ready.wait("waits")
        stop(scheduler, signal.SIGTERM)
    assert scheduled.runs() == [("waits/me", "abandoned"), ("waits/me", "cancelled")]


def test_a_file_that_breaks_meanwhile_is_told_once_and_mended(scheduled):
    """The scheduler goes on, and takes up what stands there later."""
    scheduled.add("good", "good.sh")
    scheduled.owe("good")
    text = scheduled.config.read_text()
    scheduled.config.write_text("oops [")
    with scheduled.running() as scheduler:
        hear(scheduler, "collect.toml: not started.")
        scheduled.config.write_text(text)
        assert "collect.toml" not in hear(scheduler, "good/me: succeeded.")
        assert stop(scheduler, signal.SIGTERM) == 0


def test_the_commands_of_the_page_work(headwater):
    """What the page about schedules types into a checkout, typed; its scheduler runs once."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "collect-on-a-schedule.md").read_text()
    typed = re.findall(r"^\$ \./headwater (.+)$", page, re.MULTILINE)
    assert len(typed) == 8
    headwater.type("instances", "add", "mail/home", "--set", f"path={headwater.place}")
    for command in typed:
        words = shlex.split(command.replace("schedule run", "schedule run --once"))
        answer = headwater.type(*words)
        assert answer.status == 0, f"{command}\n{answer.stderr}"
