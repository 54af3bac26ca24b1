"""Lists by hooks: walked to their end or said to be incomplete, whatever the hooks give."""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from listing.conftest import EXAMPLE, PROGRAM, event, listed

from headwater import limits
from headwater.sdk.http import Answer
from headwater.sdk.refusals import Refused


def skips(transcript):
    """Return why each list failed that did."""
    found = [m for m in transcript.messages if m["type"] == "SKIP_RESULT"]
    assert {m["reason"] for m in found} <= {"stream_collection_failed"}
    return {m["stream"]: m["message"] for m in found}


def test_the_example_lists_what_its_service_has(service):
    """All pages of all three lists, and a cursor behind each."""
    ran = listed(EXAMPLE, options={"endpoint": service.endpoint})
    assert ran.exit_status == 0, ran.stderr
    assert [row["id"] for row in ran.records("events")] == ["e1", "e2", "e3", "e4", "e5"]
    assert (len(ran.records("groups")), len(ran.records("ticket_inventory"))) == (2, 1)
    assert ran.state["events"] == {"known": ["e1", "e2", "e3", "e4", "e5"]}
    assert ran.messages[-2]["type"] == "STATE"


@pytest.mark.clause("INT-336")
def test_what_a_complete_list_lacks_is_deleted(service):
    """And nothing else is: not where a page fails, and not what was never there."""
    options = {"endpoint": service.endpoint}
    first = listed(EXAMPLE, options=options)
    del service.lists["events"][1]
    again = listed(EXAMPLE, options=options, state=first.state)
    deleted = [(m["stream"], m["key"]) for m in again.messages if m.get("op") == "delete"]
    assert deleted == [("events", "e2")]
    assert again.state["events"] == {"known": ["e1", "e3", "e4", "e5"]}


@pytest.mark.clause("INT-336")
@pytest.mark.parametrize(
    "second",
    [
        'raise Refused("provider_unavailable")',
        'raise Refused("provider_protocol_error")',
        'raise ValueError("secret")',
        "return Page([])",
        'return Page([{"name": "without a key"}], None, True)',
        'return Page(["not an object"], None, True)',
    ],
)
def test_nothing_is_deleted_after_a_list_that_was_not_whole(copied, second):
    """Page 2 of 2 fails, or does not say that it is the last, or holds something that cannot be told."""
    folder = copied(f'if cursor is None:\n    return Page([{event("e1")}], "2")\n{second}')
    ran = listed(folder, state={"events": {"known": ["e1", "e2"]}})
    assert [m for m in ran.messages if m.get("op") == "delete"] == []
    assert [row["id"] for row in ran.records("events") if "id" in row] == ["e1"]
    assert "secret" not in json.dumps(ran.messages)


ENDLESS = {
    "repeated_cursor": [
        'n = {None: "a", "a": "b", "b": "a"}[cursor]\nreturn Page([{"id": n + str(cursor)}], n)',
        'return Page([{"id": "1"}], "a") if cursor is None else Page([{"id": "2"}], "a")',
    ],
    "no_news": [
        'return Page([{"id": "1"}], str(int(cursor or 0) + 1))',
        "return Page([], str(int(cursor or 0) + 1))",
    ],
    "ended_early": ['return Page([{"id": "1"}])'],
    "too_many_pages": ['return Page([{"id": str(cursor)}], str(int(cursor or 0) + 1))'],
}


@pytest.mark.clause("INT-334")
@pytest.mark.parametrize("reason", ENDLESS)
def test_a_list_without_an_end_ends(copied, reason):
    """It fails with a named reason; what was met is kept, no cursor is, and the other lists are whole."""
    codes = ENDLESS[reason]
    ran = listed(copied(*codes))
    failed = ["events", "groups"][: len(codes)]
    assert skips(ran).keys() == set(failed)
    assert all(reason in message for message in skips(ran).values())
    assert ran.state.keys() == {"events", "groups", "ticket_inventory"} - set(failed)
    assert ran.exit_status == 1
    assert ran.done["error"]["code"] == "stream_collection_failed"
    assert len(ran.records("events")) <= limits.LIST_PAGES


@pytest.mark.clause("INT-334")
def test_a_list_goes_on_where_its_service_said(copied):
    """A cursor beside the last page is where the next run begins; it deletes nothing then."""
    folder = copied(f'return Page([{event("e1")}], "since-1", True) if cursor is None else Page([], cursor, True)')
    first = listed(folder)
    assert first.state["events"] == {"next": "since-1", "known": ["e1"]}
    second = listed(folder, state=first.state)
    assert second.state["events"] == first.state["events"]
    assert second.records("events") == []


BAD = [
    "return None",
    "return {'items': []}",
    "return Page(None)",
    "return Page('items', None, True)",
    "return Page([], 7)",
    "return Page([], '')",
    "return Page([], 'c' * 5000)",
    "return Page([], None, 'yes')",
    "return Page([{'id': str(n)} for n in range(10_001)], None, True)",
    "raise RuntimeError(ctx.credential.access_token)",
    "raise Refused('challenge_failed')",
    "raise Refused('none_of_ours')",
]


@pytest.mark.clause("INT-450", "INT-452")
@pytest.mark.parametrize("first", range(0, len(BAD), 3))
def test_a_page_that_is_none_fails_its_list_alone(copied, first):
    """In words of ours, without the token: each of three lists for itself."""
    ran = listed(copied(*BAD[first : first + 3]))
    assert skips(ran).keys() == {"events", "groups", "ticket_inventory"}
    assert all("provider_protocol_error" in message for message in skips(ran).values())
    assert "token-of-ada" not in ran.stderr + json.dumps(ran.messages)


@pytest.mark.clause("INT-335", "INT-452")
def test_an_item_that_is_no_record_is_passed(copied):
    """It is sent aside under no key of its own; a deep, an endless or an unwritable value costs nothing more."""
    items = "[{'id': str(n)} for n in range(1000)]"
    bad = "items[17] = 5\nitems[18] = {'id': ['x']}\n"
    bad += "items[19] = {'id': '19', 'n': float('nan')}\nitems[20] = {'id': '\\ud800'}"
    deep = "deep = []\nfor _ in range(100_000): deep = [deep]\nitems[21] = {'id': '21', 'deep': deep}"
    ran = listed(copied(f"items = {items}\n{bad}\n{deep}\nreturn Page(items, None, True)"))
    assert ran.exit_status == 0, ran.stderr[-2000:]
    sent = [m for m in ran.messages if m["type"] == "RECORD" and m["stream"] == "events"]
    assert len(sent) == 1000
    assert sum(m["key"].startswith("item ") for m in sent) == 5
    assert "19" in ran.state["events"]["known"]


@pytest.mark.clause("INT-337")
@pytest.mark.parametrize(
    ("code", "hint", "retryable"),
    [
        ("credential_invalid", "refresh_credentials", False),
        ("insufficient_scope", "upstream_unblock", False),
        ("provider_rate_limited", "retry_by_runtime", True),
        ("provider_unavailable", "retry_by_runtime", True),
        ("provider_timeout", "retry_by_runtime", True),
    ],
)
def test_what_no_list_can_do_without_ends_the_run(copied, code, hint, retryable):
    """DONE says what would help."""
    error = listed(copied(f'raise Refused("{code}")')).done["error"]
    assert (error["code"], error["recovery_hint"], error["retryable"]) == (code, hint, retryable)


@pytest.mark.clause("INT-490")
def test_a_hook_may_be_a_coroutine(service, copied):
    """Also one that sends a request from within its loop."""
    folder = copied()
    code = folder / "integration.py"
    code.write_text(code.read_text().replace("def list_", "async def list_"))
    ran = listed(folder, options={"endpoint": service.endpoint})
    assert len(ran.records("events")) == 5


@pytest.mark.clause("INT-332")
def test_one_list_is_asked_at_a_time(service, copied):
    """Whatever `resourceConcurrency` says, requests come one after the other."""
    folder = copied()
    manifest = json.loads((folder / "integration.json").read_text())
    (folder / "integration.json").write_text(json.dumps({**manifest, "sync": {"resourceConcurrency": 10}}))
    at_once, most = [0], [0]
    answer = service.RequestHandlerClass.do_GET

    def counted(desk):
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        answer(desk)
        at_once[0] -= 1

    service.RequestHandlerClass = type("Counting", (service.RequestHandlerClass,), {"do_GET": counted})
    assert listed(folder, options={"endpoint": service.endpoint}).exit_status == 0
    assert most == [1]


class Hostile(BaseHTTPRequestHandler):
    """A service that answers with what the test says."""

    body, headers_ = b"", {}

    def do_GET(self):
        self.send_response(200)
        for name, value in {"content-length": str(len(self.body)), **self.headers_}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments):
        """Say nothing."""


@pytest.mark.clause("INT-450", "INT-451", "INT-452")
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"<html>Sign in</html>", {}),
        (b"[" * 1_000_000 + b"]" * 1_000_000, {}),
        (gzip.compress(b"0" * 300_000_000, 9), {"content-encoding": "gzip"}),
        (b"x" * (limits.OUTBOUND_ANSWER_BYTES + 1), {}),
        (b'{"items":[],"next":', {"content-length": "1000000"}),
        (b"[]", {}),
        (b"", {}),
    ],
    ids=["html", "nested", "bomb", "large", "short", "array", "empty"],
)
def test_what_a_service_answers_is_not_believed(body, headers):
    """Each ends as a failure of the closed list, and nothing is unpacked."""
    door = type("Door", (Hostile,), {"body": body, "headers_": headers})
    with ThreadingHTTPServer(("127.0.0.1", 0), door) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        ran = listed(EXAMPLE, options={"endpoint": f"http://127.0.0.1:{server.server_port}"})
        server.shutdown()
    assert ran.exit_status == 1
    said = {m["message"] for m in ran.messages if m["type"] == "SKIP_RESULT"}
    assert said == {"The service answered something that was not expected (provider_protocol_error)."}
    assert "Traceback" not in ran.stderr


@pytest.mark.clause("INT-451")
@pytest.mark.parametrize("body", [b"[" * 1_000_000, b"\xff", b"", b"{"])
def test_what_is_not_json_is_a_failure_of_the_list(body):
    """A hook that looks at an answer is told by `Refused`, and by nothing else."""
    with pytest.raises(Refused) as refused:
        Answer(200, body).json()
    assert refused.value.code == "provider_protocol_error"


@pytest.mark.clause("INT-493")
def test_a_host_that_is_not_declared_is_not_asked(service, copied):
    """Neither by a list, nor where a service leads it to."""
    folder = copied(f'return Page(ctx.http.request("GET", "{service.endpoint}/events").accepted().json()["items"])')
    manifest = json.loads((folder / "integration.json").read_text())
    (folder / "integration.json").write_text(json.dumps({**manifest, "hosts": ["tickets.acme.example"]}))
    told = skips(listed(folder, options={"endpoint": "http://127.0.0.1:9"}))
    assert "provider_protocol_error" in told["events"]


@pytest.mark.clause("INT-453")
def test_an_address_of_this_machine_is_the_owners_to_give(service, copied):
    """Without an endpoint that the owner wrote, no private address is asked."""
    folder = copied(f'ctx.http.request("GET", "{service.endpoint}/events")\nreturn Page([], None, True)')
    assert "provider_protocol_error" in skips(listed(folder))["events"]


@pytest.mark.clause("INT-492")
def test_what_a_hook_prints_is_not_a_message(copied):
    """It goes to the log."""
    ran = listed(copied('print("{}")\nctx.log.write("with token-of-ada")\nreturn Page([], None, True)'))
    assert ran.exit_status == 0
    assert "with <secret>" in ran.stderr


@pytest.mark.clause("INT-492")
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "time.sleep(60)",
        "while True:\n    try:\n        time.sleep(60)\n    except Exception:\n        pass",
    ],
)
def test_a_hook_that_does_not_end_is_ended(copied, code):
    """At its deadline, which is shorter here; an error that it catches does not help it."""
    soon = f"from headwater import limits; limits.HOOK_SECONDS = 0.3\n{PROGRAM}"
    ran = listed(copied(code), program=(sys.executable, "-c", soon))
    assert ran.exit_status == 1
    assert ran.done["error"]["code"] == "provider_timeout"
