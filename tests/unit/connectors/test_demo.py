"""The demo's connector and its provider: what a round holds, what fails on purpose, and what comes again."""

import hashlib
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

import pytest

import headwater.connectors
from headwater.manifest.package import read_package
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

DEMO = Path(headwater.connectors.__path__[0]) / "demo"
NEVER = "http://127.0.0.1:9"  # the discard port: nobody listens


@contextmanager
def provider(rounds: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the provider; it ends with the block."""
    words = [sys.executable, str(DEMO / "provider.py"), "--round", str(rounds), "--delay-ms", "0"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def address(process: subprocess.Popen[bytes]) -> str:
    """Read where a provider listens."""
    stdout: IO[bytes] = process.stdout  # type: ignore[assignment]
    return str(json.loads(stdout.readline())["base_url"])


def get(url: str, path: str) -> tuple[int, dict[str, str], bytes]:
    """Ask for a path, and return status, headers and body."""
    link = HTTPConnection(url.removeprefix("http://"), timeout=20)
    link.request("GET", path)
    response = link.getresponse()
    answer = response.status, dict(response.getheaders()), response.read()
    link.close()
    return answer


def run(rounds: int, **how: Any) -> Transcript:
    """Collect from a provider in a given round."""
    with provider(rounds) as process:
        return collect(DEMO, options={"base_url": address(process)}, **how)


def only(transcript: Transcript, kind: str, **members: Any) -> list[dict[str, Any]]:
    """Return the messages of a type that have the given members."""
    return [m for m in transcript.messages if m["type"] == kind and members.items() <= m.items()]


def counts(transcript: Transcript) -> Counter[str]:
    """Count the records of each stream, deletes apart."""
    return Counter(m["stream"] + ("/deleted" if m.get("op") == "delete" else "") for m in only(transcript, "RECORD"))


def unaccounted(transcript: Transcript) -> set[str]:
    """Return the keys of the one coverage report that have no outcome."""
    (report,) = only(transcript, "DETAIL_COVERAGE")
    return set(report["required_keys"]) - {*report["hydrated_keys"], *report.get("gap_keys", ())}


@pytest.fixture(scope="module")
def first() -> Transcript:
    """A whole collection of round 0."""
    return run(0)


@pytest.fixture(scope="module")
def second(first: Transcript) -> Transcript:
    """What round 1 brings to somebody who has round 0."""
    return run(1, state=first.state)


def test_round_0_has_its_counts(first: Transcript) -> None:
    """The figures in the documents are those of the archive."""
    assert first.done["status"] == "succeeded", first.stderr
    assert counts(first) == {"people": 40, "messages": 2196, "attachments": 180}


def test_people_come_first(first: Transcript) -> None:
    """Whoever reads along knows a sender before the first message."""
    assert list(dict.fromkeys(m["stream"] for m in only(first, "RECORD"))) == ["people", "messages", "attachments"]


@pytest.mark.parametrize("stream", ["people", "messages", "attachments"])
def test_each_record_fits_its_schema(first: Transcript, stream: str) -> None:
    """The connector keeps what its manifest promises, formats too."""
    validator = compile_schema(read((DEMO / "manifest.json").read_bytes()).streams[stream].schema or {})
    assert [record for record in first.records(stream) if not validator.is_valid(record)] == []


def test_two_details_are_gaps(first: Transcript) -> None:
    """An attachment that answers 503 is a gap, with all that is needed to ask again."""
    gaps = {gap["record_key"]: (gap["detail_locator"], gap["retryable"]) for gap in only(first, "DETAIL_GAP")}
    assert gaps == {key: ({"attachment_id": key}, True) for key in ("att_0407", "att_1259")}


def test_one_detail_is_unaccounted(first: Transcript) -> None:
    """An attachment that is pending is neither claimed nor called a gap."""
    assert unaccounted(first) == {"att_0803"}


def test_every_page_saves_and_reports(first: Transcript) -> None:
    """Forty-four pages are forty-four cursors, and as many steps of a display that ends at its total."""
    steps = [(m["count"], m["total"]) for m in only(first, "PROGRESS", stream="messages")]
    assert len(only(first, "STATE", stream="messages")) == 44
    assert steps == [(min(50 * page, 2196), 2196) for page in range(1, 45)]


def test_a_run_goes_on_where_a_cursor_was_saved(first: Transcript) -> None:
    """A cursor claims exactly what was sent before it: nothing is lost, and nothing comes twice."""
    cursor = only(first, "STATE", stream="messages")[11]
    before = first.messages[: first.messages.index(cursor)]
    sent = [m["data"] for m in before if m["type"] == "RECORD" and m["stream"] == "messages"]
    rest = run(0, state={"messages": cursor["cursor"]}, streams=["messages"])
    assert sent + rest.records("messages") == first.records("messages")


def test_a_blob_is_what_the_provider_served(first: Transcript) -> None:
    """The bytes of each kind of file arrive as they are."""
    chosen = {record["mime_type"]: record for record in first.records("attachments")}
    with provider(0) as process:
        url = address(process)
        served = {kind: get(url, f"/v1/attachments/{record['id']}/content")[2] for kind, record in chosen.items()}
    assert set(served) == {"text/plain", "image/svg+xml", "image/png"}
    digests = {kind: hashlib.sha256(content).hexdigest() for kind, content in served.items()}
    assert digests == {kind: record["blob_ref"]["sha256"] for kind, record in chosen.items()}


def test_the_next_round_brings_only_what_changed(second: Transcript) -> None:
    """Twelve new messages and five edited ones, one delete, and the one new attachment."""
    assert counts(second) == {"people": 40, "messages": 17, "messages/deleted": 1, "attachments": 1}


def test_the_next_round_tells_new_from_edited(first: Transcript, second: Transcript) -> None:
    """Five messages come again with another text; the deleted one had been sent; twelve were never seen."""
    known = {record["id"]: record["body"] for record in first.records("messages")}
    (gone,) = [m["key"] for m in only(second, "RECORD", op="delete")]
    sent = [m["data"] for m in only(second, "RECORD", stream="messages") if m.get("op") != "delete"]
    edited = [record for record in sent if record["id"] in known]
    assert gone in known
    assert len(sent) - len(edited) == 12
    assert [record["body"].startswith(known[record["id"]] + "\n\nEdited") for record in edited] == [True] * 5


def test_nothing_fails_in_the_next_round(second: Transcript) -> None:
    """From round 1 on every detail is accounted for."""
    assert (only(second, "DETAIL_GAP"), unaccounted(second)) == ([], set())


def test_what_failed_heals_in_a_later_whole_run() -> None:
    """Who could not commit round 0 gets all 184 attachments of round 1, the three that failed among them."""
    healed = run(1)
    keys = {record["id"] for record in healed.records("attachments")}
    assert counts(healed) == {"people": 40, "messages": 2207, "messages/deleted": 1, "attachments": 184}
    assert keys >= {"att_0407", "att_0803", "att_1259"}


def test_rounds_that_were_missed_come_together(first: Transcript) -> None:
    """Three rounds on, each change is there once: 36 new, 15 edited, 3 deleted."""
    assert counts(run(3, state=first.state, streams=["messages"])) == {"messages": 51, "messages/deleted": 3}


@pytest.mark.parametrize("rounds", [1, 10, 40, 365])
def test_each_round_changes_as_much(rounds: int) -> None:
    """However long it goes on, a round's day has eighteen changes: nobody edits what was deleted before."""
    day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=rounds)
    with provider(rounds) as process:
        page = json.loads(get(address(process), f"/v1/messages?updated_since={day:%Y-%m-%dT%H:%M:%SZ}")[2])
    edited = [message for message in page["messages"] if "Edited" in message.get("body", "")]
    assert (len(page["messages"]), len(edited), sum("deleted" in message for message in page["messages"])) == (18, 5, 1)


def test_without_attachments_no_coverage_is_owed() -> None:
    """A run of messages alone asks for no detail, and says nothing of any."""
    alone = run(0, streams=["messages"])
    assert counts(alone) == {"messages": 2196}
    assert (only(alone, "DETAIL_COVERAGE"), only(alone, "DETAIL_GAP")) == ([], [])


def test_a_time_range_holds_for_messages_and_their_attachments() -> None:
    """What was sent outside the window is not sent again, nor asked for."""
    window = {"since": "2025-03-01T00:00:00Z", "until": "2025-04-01T00:00:00Z"}
    march = run(0, streams=[{"name": name, "time_range": window} for name in ("messages", "attachments")])
    months = {record["sent_at"][:7] for record in march.records("messages")}
    months |= {record["created_at"][:7] for record in march.records("attachments")}
    assert months == {"2025-03"}


def test_a_provider_that_is_away_fails_the_run() -> None:
    """No connection is no empty archive: nothing is saved, and the run can be tried again."""
    away = collect(DEMO, options={"base_url": NEVER})
    assert away.done["status"] == "failed"
    assert away.done["error"]["recovery_hint"] == "retry_by_runtime"
    assert away.state == {}


@pytest.mark.parametrize("url", ["https://archive.example", "127.0.0.1:80", "http://127.0.0.1:80/v2"])
def test_a_strange_address_is_no_option(url: str) -> None:
    """The options' schema refuses what the connector could not use."""
    package = read_package((DEMO / "connector.toml").read_bytes())
    assert package.option_faults({"base_url": url})
    assert not package.option_faults({"base_url": NEVER})


Said = tuple[int, dict[str, str], object]


class Scripted(BaseHTTPRequestHandler):
    """A service that answers each path from a list; the last answer is repeated."""

    script: dict[str, list[Said]]
    asked: Counter[str]

    def do_GET(self) -> None:
        """Give the path's next answer."""
        path = self.path.partition("?")[0]
        self.asked[path] += 1
        status, headers, value = self.script[path][min(self.asked[path], len(self.script[path])) - 1]
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def run_on(script: dict[str, list[Said]], *streams: str) -> tuple[Transcript, Counter[str]]:
    """Collect from a scripted service; return what came, and how often each path was asked."""
    answering = type("Answering", (Scripted,), {"script": script, "asked": Counter()})
    with ThreadingHTTPServer(("127.0.0.1", 0), answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        transcript = collect(DEMO, options={"base_url": f"http://127.0.0.1:{server.server_port}"}, streams=streams)
        server.shutdown()
    return transcript, answering.asked


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [
        ([{}], ("succeeded", 2)),
        ([{}, {}], ("succeeded", 3)),
        ([{}, {}, {}], ("failed", 3)),
        ([{"Retry-After": "20"}], ("failed", 1)),
        ([{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}], ("succeeded", 2)),
    ],
)
def test_a_passing_fault_is_tried_again_twice(faults: list[dict[str, str]], outcome: tuple[str, int]) -> None:
    """Two more tries and no third; none at all where the service asks for more time than a run has."""
    script: list[Said] = [*((500, headers, {}) for headers in faults), (200, {}, {"people": []})]
    transcript, asked = run_on({"/v1/people": script}, "people")
    assert (transcript.done["status"], asked["/v1/people"]) == outcome


@pytest.mark.parametrize(
    ("described", "content", "gap"),
    [
        (500, 200, ("temporarily_unavailable", True)),
        (404, 200, ("not_available", False)),
        (200, 500, ("temporarily_unavailable", True)),
        (200, 404, ("not_available", False)),
    ],
)
def test_an_attachment_that_fails_is_a_gap(described: int, content: int, gap: tuple[str, bool]) -> None:
    """Whether its description or its bytes fail, it is accounted for; only a passing fault is worth another try."""
    moment = "2026-01-01T00:00:00Z"
    message = {"id": "m", "sent_at": moment, "updated_at": moment, "sender_id": "p", "attachment_ids": ["a"]}
    page = {"messages": [message], "next": None, "cursor": f"{moment}~m", "remaining": 1}
    script: dict[str, list[Said]] = {
        "/v1/messages": [(200, {}, page)],
        "/v1/attachments/a": [(described, {}, {"id": "a", "mime_type": "text/plain"})],
        "/v1/attachments/a/content": [(content, {}, "bytes")],
    }
    transcript, _ = run_on(script, "messages", "attachments")
    assert [(m["reason"], m["retryable"]) for m in only(transcript, "DETAIL_GAP", record_key="a")] == [gap]
    assert unaccounted(transcript) == set()


def test_the_provider_ends_with_its_stdin() -> None:
    """Whoever started it may die: it does not stay behind. Its address is all that it ever wrote."""
    with provider(0) as process:
        url = address(process)
        get(url, "/v1/people")
        assert process.communicate(timeout=20) == (b"", b"")
        assert process.returncode == 0


def test_the_provider_ends_on_sigterm() -> None:
    """It can also be told to end."""
    with provider(0) as process:
        address(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/nothing", 404),
        ("/v1/attachments/att_0001", 404),
        ("/v1/attachments/att_0803/content", 404),
        ("/v1/attachments/att_0407", 503),
        ("/v1/attachments/att_0407/content", 503),
        ("/v1/messages?limit=many", 400),
        ("/v1/messages?after=tomorrow", 400),
        ("/v1/messages?updated_since=2026-01-01", 400),
    ],
)
def test_the_provider_refuses_as_a_service_does(path: str, status: int) -> None:
    """A refusal has a status and says its error in JSON; 503 says when to come back."""
    with provider(0) as process:
        answered, headers, body = get(address(process), path)
    assert (answered, set(json.loads(body))) == (status, {"error"})
    assert headers.get("Retry-After") == ("20" if status == 503 else None)


def test_the_archive_is_always_the_same() -> None:
    """Two providers of one round serve the same bytes."""
    pages = []
    for _ in range(2):
        with provider(2) as process:
            pages.append(get(address(process), "/v1/messages?updated_since=2025-12-31T00:00:00Z&limit=200")[2])
    assert pages[0] == pages[1]
