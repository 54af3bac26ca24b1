"""What a provider sends by itself: verified before anything is done, and then no more than a hint."""

import base64
import hashlib
import hmac
import json
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress

import apsw
import pytest

from headwater import limits

HOOKS = """
    def verify_webhook(self, ctx: Context, headers: Mapping[str, str], body: bytes) -> bool:
        assert ctx.credential is None
        return headers.get("x-acme-topic") != "refused"

    def map_webhook(self, ctx: Context, body: bytes) -> Mapping[str, Any]:
        import json
        return json.loads(body)
"""
WAITS = "    import time; time.sleep(60)\n    stream.save"


class Hooked:
    """A connection that takes webhooks, and the provider that knows its secret."""

    def __init__(self, program, connection, made) -> None:
        self.program, self.connection, self.made = program, connection, made
        self.number = 0

    def sent(self, body=b'{"account":"ada"}', *, endpoint=None, secret=None, old=0, signature=None, **headers):
        """Send a webhook as the provider does; no token, and under the name of a tunnel."""
        self.number += 1
        name = headers.pop("webhook_id", f"msg_{self.number}")
        at = headers.pop("webhook_timestamp", str(int(time.time()) - old))
        given = {"webhook_id": name, "webhook_timestamp": at, "authorization": None, "host": "hooks.example"}
        given["webhook_signature"] = signature or self.signed(name, at, body, secret)
        path = f"/v1/webhooks/{endpoint or self.made['endpoint']}"
        return self.program.ask("POST", path, body, **{**given, **headers})

    def signed(self, name, at, body, secret=None):
        key = base64.b64decode((secret or self.made["secret"]).removeprefix("whsec_"))
        mac = hmac.digest(key, f"{name}.{at}.".encode() + body, hashlib.sha256)
        return f"v1,{base64.b64encode(mac).decode()}"

    @property
    def runs(self):
        return self.program.get("syncs").ok()["items"]

    def counts(self):
        shown = self.program.get(f"connections/{self.connection}/webhook").ok()
        return shown["accepted"], shown["repeated"], shown["dropped"]

    def settled(self, count):
        """Return the runs once there are so many and none is under way."""
        end = time.monotonic() + 60
        while len(self.runs) < count or any(run["status"] == "running" for run in self.runs):
            assert time.monotonic() < end
        return self.runs


@pytest.fixture
def takes(person):
    """A person whose integration takes webhooks."""
    folder = person.folder / "me"
    declared = json.loads((folder / "integration.json").read_text())
    capabilities = [*declared["capabilities"], "webhooks"]
    person.manifest(capabilities=capabilities, webhooks={"signature": "hmac_sha256"})
    with (folder / "integration.py").open("a") as file:
        file.write(HOOKS)
    return person


@pytest.fixture
def hooked(takes, program):
    connection = program.connected()
    return Hooked(program, connection, program.post(f"connections/{connection}/webhook").ok(201))


@contextmanager
def slow(person, acme):
    """Have the run that begins within wait before its end; wait until it has come so far."""
    source = person.folder / "me" / "connector.py"
    text = source.read_text()
    source.write_text(text.replace("    stream.save", WAITS))
    yield
    end = time.monotonic() + 60
    while "GET /events?cursor=" not in acme.asked:
        assert time.monotonic() < end
    source.write_text(text)


@pytest.mark.clause("INT-454", "INT-455", "INT-421")
def test_a_verified_webhook_is_a_sync_and_nothing_else(hooked):
    """It is answered at once; what it says besides changes no connection, no record and no setting."""
    database = apsw.Connection(str(hooked.program.person.state / "headwater.db"))
    before = database.execute("SELECT * FROM connections").fetchall()
    body = b'{"account":"ada","state":"paid","owner":0,"events":[{"id":"2","sold":true}],"connection":"other"}'
    assert hooked.sent(body).ok(202) == {}
    (run,) = hooked.settled(1)
    assert (run["status"], run["instance"], run["accepted"]) == ("succeeded", "acme_tickets/me", 1)
    records = hooked.program.person.type("records", "list", "acme_tickets/me", "events")["items"]
    assert [record["data"] for record in records] == [{"id": "1"}]
    assert database.execute("SELECT * FROM connections").fetchall() == before
    database.close()
    assert hooked.counts() == (1, 0, 0)


@pytest.mark.clause("INT-454")
def test_what_is_not_signed_as_it_should_be_does_nothing(hooked):
    """A wrong key, a changed byte, another id or time, another scheme, none at all."""
    body, at = b'{"account":"ada"}', str(int(time.time()))
    right = hooked.signed("msg_x", at, body)
    secret = base64.b64encode(b"x" * 32).decode()
    wrong = [
        hooked.sent(body, secret=secret),
        hooked.sent(body + b" ", signature=right, webhook_id="msg_x", webhook_timestamp=at),
        hooked.sent(body, signature=right, webhook_id="msg_y", webhook_timestamp=at),
        hooked.sent(body, signature=right, webhook_id="msg_x", webhook_timestamp=str(int(at) + 1)),
        hooked.sent(body, signature=right.replace("v1,", "v2,"), webhook_id="msg_x", webhook_timestamp=at),
        hooked.sent(body, signature=right.lower(), webhook_id="msg_x", webhook_timestamp=at),
        hooked.sent(body, signature=right[:-1], webhook_id="msg_x", webhook_timestamp=at),
        hooked.sent(body, signature=" ".join([right] * 9), webhook_id="msg_x", webhook_timestamp=at),
        hooked.sent(body, webhook_signature=None),
        hooked.sent(body, webhook_id=""),
        hooked.sent(body, webhook_id="m" * (limits.WEBHOOK_ID_CHARACTERS + 1)),
        hooked.sent(body, signature="v1,é"),
        hooked.sent(body, x_acme_topic="refused"),
    ]
    for number, answer in enumerate(wrong):
        assert (number, answer.status, answer.error["integration_code"]) == (number, 401, "webhook_signature_invalid")
    assert hooked.counts() == (0, 0, 0)
    assert hooked.runs == []
    assert hooked.sent(body, signature=f"v1,x {right}", webhook_id="msg_x", webhook_timestamp=at).ok(202) == {}
    assert len(hooked.settled(1)) == 1


@pytest.mark.clause("INT-454")
def test_the_time_of_a_webhook_is_within_its_window(hooked):
    """Old ones, those of the future and what is no time are refused."""
    margin = 30
    for old in (limits.WEBHOOK_WINDOW_SECONDS + margin, -limits.WEBHOOK_WINDOW_SECONDS - margin):
        assert hooked.sent(old=old).status == 401
    for at in ("", "now", "-1", "1.5", "9" * 30, "١٢"):
        assert hooked.sent(webhook_timestamp=at.encode("utf-8").decode("latin-1"), signature="v1,x").status == 401
    assert hooked.counts() == (0, 0, 0)
    assert hooked.sent(old=limits.WEBHOOK_WINDOW_SECONDS - margin).status == 202


@pytest.mark.clause("INT-454")
def test_a_replay_has_no_effect(hooked):
    """Also behind a new start of the server, which shares the store of what was seen."""
    at = str(int(time.time()))
    assert hooked.sent(webhook_id="msg_r", webhook_timestamp=at).ok(202) == {}
    hooked.settled(1)
    assert hooked.sent(webhook_id="msg_r", webhook_timestamp=at).ok(202) == {}
    assert (len(hooked.settled(1)), hooked.counts()) == (1, (1, 1, 0))
    hooked.program.stop()
    again = type(hooked.program)(hooked.program.person)
    try:
        other = Hooked(again, hooked.connection, hooked.made)
        assert other.sent(webhook_id="msg_r", webhook_timestamp=at).ok(202) == {}
        assert (len(other.settled(1)), other.counts()) == (1, (1, 2, 0))
    finally:
        again.stop()


@pytest.mark.clause("INT-475")
def test_a_webhook_of_another_account_is_dropped_and_counted(hooked):
    """Its sender is told nothing else than of one that fits. One that names no account is its connection's."""
    assert hooked.sent(b'{"account":"eve"}').ok(202) == hooked.sent(b'{"account":""}').ok(202) == {}
    assert (hooked.counts(), hooked.runs) == ((0, 0, 2), [])
    assert hooked.sent(b"{}").ok(202) == {}
    assert len(hooked.settled(1)) == 1
    assert hooked.counts() == (1, 0, 2)


@pytest.mark.clause("INT-475")
def test_an_endpoint_is_of_one_connection(hooked):
    """A new one takes the place of the old; a disconnected account has none, and its secret is erased."""
    program, old = hooked.program, hooked.made
    assert hooked.sent(endpoint="wh_x").refused == (404, "not_found")
    made = program.post(f"connections/{hooked.connection}/webhook").ok(201)
    assert {made["endpoint"], made["secret"]} & {old["endpoint"], old["secret"]} == set()
    assert hooked.sent().refused == (404, "not_found")
    hooked.made = made
    assert hooked.sent(secret=old["secret"]).status == 401
    assert hooked.sent().ok(202) == {}
    hooked.settled(1)
    database = apsw.Connection(str(program.person.state / "headwater.db"))
    database.execute("UPDATE webhook_endpoints SET owner = owner + 1")
    assert hooked.sent().refused == (404, "not_found")
    database.execute("UPDATE webhook_endpoints SET owner = owner - 1")
    program.post(f"connections/{hooked.connection}/disconnect").ok()
    assert hooked.sent().refused == (404, "not_found")
    assert database.execute("SELECT count(*) FROM webhook_endpoints").get == 0
    database.close()
    assert program.get(f"connections/{hooked.connection}/webhook").refused == (409, "revoked")


def test_a_revoked_connection_takes_no_webhooks(hooked):
    hooked.program.person.type("connections", "revoke", "acme_tickets/me", "--expected-revision", "1")
    assert hooked.sent().refused == (404, "not_found")


def test_an_integration_that_was_changed_or_disabled_takes_no_webhooks(hooked):
    """Nor does one that is not in order; what is wrong with it is not told to whoever sends."""
    person = hooked.program.person
    declared = json.loads((person.folder / "me" / "integration.json").read_text())
    person.manifest(auth={"methods": declared["auth"]["methods"][::2]})
    assert hooked.sent().refused == (404, "not_found")
    person.manifest(auth={"methods": []})
    broken = hooked.sent()
    assert (broken.refused, "faults" in broken.error) == ((503, "unavailable"), False)
    person.manifest(auth=declared["auth"])
    person.type("connectors", "disable", "acme_tickets")
    assert hooked.sent().refused == (404, "not_found")
    person.type("connectors", "enable", "acme_tickets")
    assert hooked.sent().status == 202
    hooked.settled(1)


@pytest.mark.clause("INT-455")
def test_many_hints_are_one_run_and_one_more(hooked, acme):
    """What comes before a run begins is in it; what comes while it runs is in the one after it."""
    with slow(hooked.program.person, acme):
        assert hooked.sent().status == 202
    for _ in range(5):
        assert hooked.sent().status == 202
    (run,) = hooked.runs
    hooked.program.person.type("runs", "cancel", run["run_id"])
    ended = hooked.settled(2)
    assert [run["status"] for run in ended] == ["succeeded", "cancelled"]
    assert hooked.counts() == (6, 0, 0)
    last = hooked.program.refreshed(hooked.connection)["run_id"]  # nothing runs any more
    assert [run["run_id"] for run in hooked.settled(3)] == [last, *(run["run_id"] for run in ended)]


def test_a_hint_waits_for_a_run_of_somebody_else(hooked, acme):
    """A person collects at the terminal meanwhile; then it is the server's turn."""
    words = hooked.program.person.words("collect", "acme_tickets/me")
    with ExitStack() as running:
        with slow(hooked.program.person, acme):
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            busy = running.enter_context(subprocess.Popen(words, **pipes))
        assert hooked.sent().status == 202
        busy.send_signal(signal.SIGINT)
        busy.communicate(timeout=60)
    assert [run["status"] for run in hooked.settled(2)] == ["succeeded", "cancelled"]


def test_one_that_could_not_be_looked_at_may_be_sent_again(hooked):
    """The integration's code told nonsense: that is no effect, so it is not taken for seen."""
    at = str(int(time.time()))
    answer = hooked.sent(b"[]", webhook_id="msg_n", webhook_timestamp=at)
    assert (answer.status, answer.error["integration_code"]) == (502, "provider_protocol_error")
    assert hooked.sent(webhook_id="msg_n", webhook_timestamp=at).status == 202
    assert hooked.counts() == (1, 0, 0)


def test_bodies_are_bounded_and_the_rest_of_the_server_stays_closed(hooked):
    """Neither a large body nor a path beside the endpoint's lets anything in without a token."""
    with suppress(BrokenPipeError, ConnectionResetError):  # it spoke and closed while the client was still sending
        assert hooked.sent(b"x" * (limits.WEBHOOK_BYTES + 1)).refused == (413, "body_too_large")
    program, outside = hooked.program, {"authorization": None, "host": "hooks.example"}
    for path in (
        "/v1/webhooks/../integrations",
        "/v1/webhooks/%2e%2e/integrations",
        "/v1/webhooks//",
        "/v1/webhooks/a/b",
    ):
        assert program.ask("POST", path, {}, **outside).status == 404
    assert program.ask("GET", f"/v1/webhooks/{hooked.made['endpoint']}", **outside).status == 405
    for path in ("/v1/integrations", "/v1/webhooks", f"/v1/connections/{hooked.connection}/webhook"):
        assert program.ask("GET", path, **outside).status == 403


@pytest.mark.clause("INT-422")
def test_the_command_line_makes_and_shows_the_same(takes, program):
    """The secret is told when it is made, and never again; a service's own is entered as a credential is."""
    connection = program.connected()
    assert program.get(f"connections/{connection}/webhook").refused == (404, "not_found")
    made = takes.type("connections", "webhook", "acme_tickets/me", "--make")
    assert made.pop("secret").startswith("whsec_")
    shown = program.get(f"connections/{connection}/webhook").ok()
    assert shown == made == takes.type("connections", "webhook", "acme_tickets/me")
    secret = f"whsec_{base64.b64encode(b'of the service, not of ours').decode()}"
    takes.secret(takes.entry, json.dumps({"secret": secret}))
    entered = takes.type("connections", "webhook", "acme_tickets/me", "--secret-file", str(takes.entry))
    assert "secret" not in entered
    assert Hooked(program, connection, {**entered, "secret": secret}).sent().status == 202
    assert program.post(f"connections/{connection}/webhook", {"secret": "too short"}).refused == (400, "invalid_input")
    takes.entry.unlink()
    for path in takes.folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_an_integration_that_declares_none_takes_none(program):
    connection = program.connected()
    assert program.post(f"connections/{connection}/webhook").refused == (409, "unsupported")
