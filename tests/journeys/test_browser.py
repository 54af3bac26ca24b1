"""The portal example, a real browser and a real site: logged in once, with a code that the owner is asked for."""

import json
import os
import select
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import needs
import pytest
from sites.portal import ORDERS, Portal, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "connectors" / "portal"
PASSWORD = "zebra-parade-5e471"
CODE = "quagga-90210"
RECORDS = [(number, placed_on, item, int(cents)) for number, placed_on, item, cents in ORDERS]

pytestmark = needs.browser


@pytest.fixture
def portal() -> Iterator[Portal]:
    """A portal that has one user."""
    with serving(Portal("ada", PASSWORD, CODE)) as portal:
        yield portal


def words(headwater: Any, portal: Portal, *, password: str = PASSWORD, code: str | None = CODE) -> list[str]:
    """Return the command line that collects from the portal, with prepared answers."""
    prepared = [("credentials", {"username": "ada", "password": password}), ("otp", {"code": code})]
    path = headwater.place / "answers.json"
    path.write_text(json.dumps({"answers": [{"kind": kind, "data": data} for kind, data in prepared]}))
    where = ["--from", str(EXAMPLE), "--set", f"url={portal.address}/orders"]
    return headwater.words("collect", "portal/me", *where, "--answer-file", str(path))


def orders(headwater: Any) -> list[tuple[Any, ...]]:
    """Return the records as the database has them."""
    items = headwater.type("records", "list", "portal/me", "orders", "--limit", "100").result["items"]
    names = ("number", "placed_on", "item", "price_cents")
    return sorted(tuple(item["data"][name] for name in names) for item in items)


def browsers(headwater: Any) -> dict[str, int]:
    """Return a pidfd of each process that runs on a profile of this Headwater."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{headwater.state}/browsers/".encode() in (entry / "cmdline").read_bytes():
                found[entry.name] = os.pidfd_open(int(entry.name))
    return found


def all_gone(found: dict[str, int]) -> bool:
    """Wait for the end of processes; False where one lives on."""
    return all(select.select([descriptor], [], [], 10)[0] for descriptor in found.values())


def holding(headwater: Any, *texts: str) -> list[str]:
    """Return the files of a Headwater that hold one of the texts."""
    files = [path for path in headwater.place.rglob("*") if path.is_file()]
    assert len(files) > 20
    return [path.name for path in files if any(text.encode() in path.read_bytes() for text in texts)]


def rows(headwater: Any, file: str, table: str) -> int:
    """Count what a profile's database of forms holds."""
    (path,) = headwater.state.glob(f"browsers/*/Default/{file}")
    return sqlite3.connect(path).execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def assert_kept_nowhere(headwater: Any, *answers: Any) -> None:
    """Neither Headwater nor the profile has an answer: no file, no remembered password, no history of fields."""
    (headwater.place / "answers.json").unlink()
    shown = [*answers, headwater.type("runs", "explain")]
    assert [answer for answer in shown if PASSWORD in answer.stdout + answer.stderr] == []
    assert [answer for answer in shown if CODE in answer.stdout + answer.stderr] == []
    assert holding(headwater, PASSWORD, CODE) == []
    assert rows(headwater, "Login Data", "logins") == 0
    assert rows(headwater, "Web Data", "autofill") == 0


@pytest.mark.clause("CP-054", "CP-055", "CP-704", "CP-711")
def test_a_login_is_asked_for_once_and_kept(headwater, portal):
    """The first run asks for password and code, and the second uses the profile. What was answered is not kept."""
    first = headwater.run(words(headwater, portal), "")
    assert first.result["status"] == "succeeded"
    assert orders(headwater) == RECORDS
    assert [request for request in portal.seen if "POST" in request] == ["POST /login", "POST /code"]
    assert browsers(headwater) == {}
    assert_kept_nowhere(headwater, first)

    portal.seen.clear()
    again = type(headwater)(headwater.place, "human").type("collect", "portal/me")
    assert again.status == 0
    assert ("The browser runs without its sandbox" in again.stderr) is (os.geteuid() == 0)
    assert set(portal.seen) == {"GET /orders"}

    portal.expire()
    expired = headwater.type("collect", "portal/me")  # and nobody is there to ask
    assert expired.failure["connector_error"]["message"] == "The owner's answer was: cancelled."
    assert orders(headwater) == RECORDS


@pytest.mark.clause("CP-711")
@pytest.mark.parametrize(
    ("wrong", "said", "hint"),
    [
        ({"password": f"{PASSWORD}-not"}, "The portal refused the name or the password.", "refresh_credentials"),
        ({"code": f"{CODE}-not"}, "The portal refused the code.", "manual_action_required"),
    ],
)
def test_a_wrong_answer_fails_the_run_and_says_which(headwater, portal, wrong, said, hint):
    """Nothing is collected, the browser is gone, and the failure names what was refused, but not what was said."""
    failed = headwater.run(words(headwater, portal, **wrong), "")
    assert failed.failure["code"] == "run_failed"
    assert failed.failure["connector_error"] == {"message": said, "retryable": False, "hint": hint, "action": hint}
    assert "GET /orders" not in portal.seen[1:]
    assert browsers(headwater) == {}
    assert_kept_nowhere(headwater, failed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_browser_goes_with_the_run(headwater, portal, number):
    """A cancelled run ends it, and so does the death of the host."""
    portal.table.clear()
    host = subprocess.Popen(words(headwater, portal), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert portal.was_asked("POST /code")
        running = browsers(headwater)
        assert len(running) > 1
        host.send_signal(number)
        host.communicate(timeout=60)
    finally:
        host.kill()
    assert all_gone(running)
    assert host.returncode == (130 if number == signal.SIGINT else -number)
    assert headwater.left_behind() == []


@pytest.mark.clause("CP-053", "CP-055")
def test_a_connector_may_have_the_profile_and_no_browser(headwater):
    """Only the folder is announced, and what a connector leaves in it is there in its next run."""
    manifest = headwater.manifest(runtime_requirements={"bindings": {"browser_profile": {"required": True}}})
    runs = [headwater.collect("keeps_a_profile.py", manifest=manifest).result["run_id"] for _ in range(2)]
    kept = [headwater.type("records", "get", "guest/adhoc", "alpha", run).result["data"] for run in runs]
    assert [data["text"] for data in kept] == ["nothing", runs[0]]
    assert kept[0]["bindings"] == ["browser_profile"]
    (profile,) = (headwater.state / "browsers").iterdir()
    assert [path.name for path in profile.iterdir()] == ["kept"]


@pytest.mark.clause("CP-054")
def test_a_connector_that_drives_a_browser_can_be_checked(headwater, portal):
    """Each run of a check has its browser; one profile serves them all, and goes with the check."""
    answers = headwater.place / "answers.json"
    words(headwater, portal)
    given = ["--set", f"url={portal.address}/orders", "--answer-file", str(answers), "--pack", "start"]
    report = headwater.type("connectors", "check", str(EXAMPLE), *given).result
    verdicts = {row["clause"]: row["verdict"] for row in report["clauses"]}
    assert "fail" not in verdicts.values()
    assert (verdicts["CP-058"], verdicts["CP-059"]) == ("pass", "pass")
    assert portal.seen.count("POST /code") == 1
    assert browsers(headwater) == {}
