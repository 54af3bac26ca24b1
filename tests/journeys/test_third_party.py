"""Three connectors that others wrote run here unchanged, from their own manifests, on files that a person exports."""

import os
import subprocess
from pathlib import Path
from typing import Any

import needs
import pytest

FLEET = Path(__file__).parents[1] / "fleet"
PDPP = FLEET / "pdpp-reference"

CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
{events}END:VCALENDAR
"""
EVENT = """BEGIN:VEVENT
UID:{uid}@example.org
DTSTART:{start}
SUMMARY:{summary}
END:VEVENT
"""
HEALTH = """<?xml version="1.0" encoding="UTF-8"?>
<HealthData locale="en_US">
 <Record type="HKQuantityTypeIdentifierStepCount" sourceName="Phone" unit="count" value="120"
  creationDate="2024-01-05 10:00:00 +0000" startDate="2024-01-05 09:00:00 +0000" endDate="2024-01-05 09:10:00 +0000"/>
 <Workout workoutActivityType="HKWorkoutActivityTypeRunning" duration="30.5" durationUnit="min" sourceName="Watch"
  creationDate="2024-01-07 10:00:00 +0000" startDate="2024-01-07 09:00:00 +0000" endDate="2024-01-07 09:30:00 +0000"/>
</HealthData>
"""
CHAT = "1/5/24, 10:00 AM - Bo: Hello\n1/5/24, 10:01 AM - Me: Hi there\nand a second line\n"


def add(headwater: Any, name: str, *options: str) -> Any:
    """Take a connector over as its author has it, under its own manifest."""
    manifest = PDPP / "manifests" / f"{name}.json"
    command = ("node", "--import", "tsx", f"connectors/{name}/index.ts")
    answer = headwater.type("connectors", "add", str(PDPP), "--manifest", str(manifest), *options, "--", *command)
    if answer.status == 1 and answer.failure["code"] == "install_failed" and "CI" not in os.environ:
        pytest.skip("needs the npm registry")
    return answer.result


def collect(headwater: Any, instance: str, *settings: str) -> dict[str, Any]:
    """Collect, and return what is kept of the run."""
    set_ = [word for setting in settings for word in ("--set", setting)]
    run = headwater.type("collect", instance, *set_).result["run_id"]
    return headwater.type("runs", "explain", run).result


def kept(run: dict[str, Any]) -> dict[str, int]:
    """Return how many records each stream of a run kept, where it kept some."""
    return {row["stream"]: row["kept"] for row in run["streams"] if row["kept"]}


def calendar(*events: tuple[str, str, str]) -> str:
    """Write a calendar of (uid, start, summary)."""
    return CALENDAR.format(events="".join(EVENT.format(uid=u, start=s, summary=t) for u, s, t in events))


@needs.node
def test_a_calendar(headwater, tmp_path):
    """The second run goes on from the connector's own cursor, and brings only what is new."""
    (tmp_path / "home.ics").write_text(calendar(("a", "20240105T100000Z", "Dentist")))
    added = add(headwater, "ical")
    assert (added["connector"], added["installed"]) == ("ical", ["node_modules"])
    first = collect(headwater, "ical/me", f"ical_import_dir={tmp_path}")
    assert kept(first) == {"events": 1}
    assert headwater.cursors("ical/me") == {"events": {"latest_start": "2024-01-05T10:00:00Z"}}
    both = calendar(("a", "20240105T100000Z", "Dentist"), ("b", "20240301T090000Z", "Train"))
    (tmp_path / "home.ics").write_text(both)
    assert kept(collect(headwater, "ical/me")) == {"events": 1}
    page = headwater.type("records", "list", "ical/me", "events").result["items"]
    assert {row["data"]["summary"] for row in page} == {"Dentist", "Train"}


@needs.node
def test_health_data(headwater, tmp_path):
    """Two streams from one file, each with a cursor; the same file again brings nothing."""
    (tmp_path / "export.xml").write_text(HEALTH)
    add(headwater, "apple_health")
    assert kept(collect(headwater, "apple-health/me", f"apple_health_export_dir={tmp_path}")) == {
        "records": 1,
        "workouts": 1,
    }
    assert set(headwater.cursors("apple-health/me")) == {"records", "workouts"}
    assert kept(collect(headwater, "apple-health/me")) == {}


@needs.node
def test_a_chat(headwater, tmp_path):
    """It declares a strategy of parents without a parent, and reports coverage of streams that map to themselves."""
    (tmp_path / "WhatsApp Chat with Bo.txt").write_text(CHAT)
    add(headwater, "whatsapp", "--variable", "WHATSAPP_EXPORT_DIR")
    run = collect(headwater, "whatsapp/me", f"whatsapp_export_dir={tmp_path}")
    assert kept(run) == {"chats": 1, "messages": 2}
    reported = {(row["stream"], row["parent"]) for row in run["facts"]["coverage"]}
    assert reported == {(name, name) for name in ("attachments", "chats", "messages")}
    assert set(run["checkpoints"]["committed"]) == {"attachments", "chats", "messages"}
    assert run["facts"]["extensions"] == {}
    texts = {
        row["data"]["content"] for row in headwater.type("records", "list", "whatsapp/me", "messages").result["items"]
    }
    assert texts == {"Hello", "Hi there\nand a second line"}


@needs.node
def test_no_files_are_no_records(headwater, tmp_path):
    """Their skip is shown, and no cursor moves."""
    add(headwater, "apple_health")
    run = collect(headwater, "apple-health/me", f"apple_health_export_dir={tmp_path}")
    assert [skip["reason"] for skip in run["facts"]["skips"]] == ["export_not_found"]
    assert headwater.type("state", "show", "apple-health/me").result["cursors"] == []


def test_they_are_as_their_authors_wrote_them():
    """Every file is the git blob that it is at the commit; only the list of packages is ours."""
    rows = [line.split(" ", 1) for line in (FLEET / "pdpp-reference.blobs.txt").read_text().splitlines()]
    theirs = {path.relative_to(PDPP).as_posix() for path in PDPP.rglob("*") if path.is_file()}
    assert theirs - {name for _, name in rows} == {"package.json", "package-lock.json"}
    words = ["git", "hash-object", "--no-filters", *(name for _, name in rows)]
    found = subprocess.run(words, cwd=PDPP, capture_output=True, text=True, timeout=60)
    assert found.stdout.split() == [blob for blob, _ in rows]
