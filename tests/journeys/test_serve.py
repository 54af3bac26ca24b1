"""The personal server as a program sees it: a real process, a real client, and runs that begin where it says."""

import asyncio
import http.client
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from headwater import limits
from headwater.collect.plan import Authority
from headwater.errors import OperationalError, UsageError
from headwater.host import Host
from headwater.joining.cursors import StateAddress
from headwater.joining.programs import CollectRequest, Watching
from headwater.server.listening import ADDRESS
from headwater.settings import Settings
from headwater.store.locks import Locks

GUESTS = Path(__file__).parents[1] / "guests"
CONNECTOR = json.loads((GUESTS / "manifest.json").read_text())["connector_id"]


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def result(self):
        """The object of an answer that is none of the refusals."""
        assert self.status == 200, self.text
        return json.loads(self.text)

    @property
    def error(self):
        """The one shape of a refusal, without the id that is another one each time."""
        error = json.loads(self.text)["error"]
        assert error.pop("request_id") == self.headers["Request-Id"]
        return self.status, error["type"], error["code"], error.get("param")


class Served:
    """A server process and its client."""

    def __init__(self, headwater, process, started):
        self.headwater = headwater
        self.process = process
        self.started = started
        self.port = int(started["listening"].rpartition(":")[2])
        self.token = Path(started["token_file"]).read_text().strip()

    def ask(self, method, path, body=None, headers=None, *, token=None):
        """Send one request, on a connection of its own."""
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=30)
        sent = {"Authorization": f"Bearer {token or self.token}", **(headers or {})}
        try:
            connection.request(method, path, body, {name: text for name, text in sent.items() if text is not None})
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def path(self, connector_id=CONNECTOR, **query):
        return f"/v1/state/{quote(connector_id, safe='')}" + (f"?{urlencode(query)}" if query else "")

    def get(self, **query):
        return self.ask("GET", self.path(**query))

    def put(self, body, **query):
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        return self.ask("PUT", self.path(**query), text.encode() if isinstance(text, str) else text)

    def stop(self, number):
        """Stop the server; return its exit status and what it said at last."""
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stdout.decode(), stderr.decode()


@pytest.fixture
def serve(headwater):
    """Start servers; none is left behind."""
    processes = []

    def starting(place=headwater):
        environment = {"HOME": str(place.place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(place.words("serve", "--port", "0"), env=environment, **pipes)
        processes.append(process)
        line = process.stdout.readline()
        assert line, process.stderr.read().decode()
        return Served(place, process, json.loads(line)["result"])

    yield starting
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def served(headwater, serve):
    """A server of a Headwater that has collected once, in the owner's name."""
    assert headwater.collect("good.sh").status == 0
    return serve()


@pytest.fixture
def start_of(headwater):
    """Collect under an authority from a connector that saves a cursor; return the START that came, as text."""
    host = Host(Settings(headwater.place / "config.toml", headwater.state))
    notes = headwater.file("notes")

    def collecting(authority=None, cursor="{}"):
        command = [sys.executable, str(GUESTS / "notes_start.py"), str(notes), cursor]
        program = host.program_of((GUESTS / "manifest.json").read_bytes(), command)
        asyncio.run(host.collect(CollectRequest(program, authority=authority), Watching(lambda _event: None)))
        return notes.read_text().splitlines()[-1]

    return collecting


# The namespaces.


@pytest.mark.clause("CP-406")
def test_what_is_put_under_a_grant_is_got_under_it_and_nowhere_else(served):
    """The owner's cursors and those of another grant stay as they were."""
    before = served.get().result
    assert before["state"] == served.headwater.cursors()
    put = served.put({"state": {"alpha": {"page": 7}}}, grant_id="G1").result
    got = served.get(grant_id="G1").result
    assert got == put
    assert got.pop("updated_at") is not None
    assert got == {
        "object": "stream_state",
        "connector_id": CONNECTOR,
        "grant_id": "G1",
        "state": {"alpha": {"page": 7}},
    }
    assert served.get().result == before
    assert served.get(grant_id="G2").result == {**got, "grant_id": "G2", "state": {}, "updated_at": None}


@pytest.mark.clause("CP-406")
def test_a_run_in_a_grants_name_starts_from_what_was_put_and_its_cursors_are_got(served, start_of):
    """START carries exactly that state; what the run then commits is what the route answers with."""
    served.put({"state": {"alpha": {"put": 1}, "beta": {"put": 2}}}, grant_id="G1")
    own = served.get().result
    assert json.loads(start_of(Authority("G1"), '{"ran":1}'))["state"] == {"alpha": {"put": 1}, "beta": {"put": 2}}
    assert served.get(grant_id="G1").result["state"]["alpha"] == {"ran": 1}
    assert served.get().result == own
    assert json.loads(start_of(Authority("G2")))["state"] is None


@pytest.mark.clause("CP-406")
def test_without_a_grant_the_owners_cursors_are_put(served, start_of):
    """They are those that the next whole run starts from; a grant has nothing of them."""
    served.put({"state": {"alpha": {"own": 1}}})
    assert served.headwater.cursors()["alpha"] == {"own": 1}
    assert served.get(grant_id="G1").result["state"] == {}
    assert json.loads(start_of())["state"]["alpha"] == {"own": 1}


def test_a_put_is_merged_by_stream(served):
    """A stream that it does not name keeps its cursor; an empty map changes nothing and leaves no trace."""
    served.put({"state": {"alpha": {"n": 1}, "beta": {"n": 2}}}, grant_id="G1")
    merged = served.put({"state": {"beta": {"n": 3}}}, grant_id="G1").result
    assert merged["state"] == {"alpha": {"n": 1}, "beta": {"n": 3}}
    runs = served.headwater.type("runs", "list").result["items"]
    assert served.put({"state": {}}, grant_id="G1").result == merged
    assert served.headwater.type("runs", "list").result["items"] == runs


def test_a_cursor_comes_back_byte_for_byte(served, start_of):
    """Digits, escapes, order and spaces are the connector's; a line break between tokens is a space in START."""
    cursor = '{"z": 123456789012345678901234567890.10, "a":"\\u00e9 é\\n",  "n":[null,{}],"":1e2}'
    answer = served.put(f'{{"state":{{"alpha":{cursor}}}}}', grant_id="G1")
    assert f'"alpha":{cursor}' in answer.text
    assert f'"alpha":{cursor}' in served.get(grant_id="G1").text
    assert f'"alpha":{cursor}' in start_of(Authority("G1"))
    served.put('{"state": {"alpha" :\n {\r\n "a":\n1}\t }\n}', grant_id="G1")
    assert '"alpha":{   "a": 1}' in start_of(Authority("G1"))


# Refusals.


@pytest.mark.parametrize(
    "cursor", ["null", "1", '"x"', "[]", "[{}]", '{"a":1,"a":2}', '{"a":{"b":1,"b":1}}', '{"a":"\\ud800"}', '{"a":NaN}']
)
def test_a_cursor_that_start_could_not_carry_stores_nothing(served, cursor):
    """Not even the good one beside it."""
    answer = served.put(f'{{"state":{{"beta":{{"n":1}},"alpha":{cursor}}}}}', grant_id="G1")
    assert answer.error[:3] == (400, "invalid_request_error", "invalid_request")
    assert answer.error[3] in ("state", "state.alpha")
    assert served.get(grant_id="G1").result["state"] == {}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"state":null}',
        '{"state":[]}',
        '{"state":{},"state":{}}',
        '{"state":{"alpha":{},"alpha":{}}}',
        '{"state":{"alpha":{}},"more":1}',
        '{"state":{}} {}',
        b'{"state":{"alpha":{"a":"\xff"}}}',
        '{"state":{"alpha":' + '{"a":' * 500 + "1" + "}" * 500 + "}}",
    ],
)
def test_a_body_that_has_not_one_reading_stores_nothing(served, body):
    """It is refused as a whole."""
    assert served.put(body, grant_id="G1").error == (400, "invalid_request_error", "invalid_request", "state")
    assert served.get(grant_id="G1").result["state"] == {}


@pytest.mark.parametrize("text", ['{},"more":1', '{}}\n{"type":"STATE"', "", "{} ", "\ud800"])
def test_whoever_asks_the_host_puts_one_object_too(served, text):
    """What is put becomes a member of START, whatever its caller has read."""
    host = Host(Settings(served.headwater.place / "config.toml", served.headwater.state))
    address = StateAddress(CONNECTOR, grant_id="G1")
    with pytest.raises(UsageError):
        host.put_state(address, {"alpha": text})
    assert host.state_of(address).cursors == {}


def test_unknown_connectors_streams_and_instances_are_not_found(served):
    """Each names what was not found, and a put of one unknown stream stores none."""
    unknown = served.get(connector_id="https://connectors.example/other")
    assert unknown.error == (404, "not_found_error", "not_found", "connector_id")
    assert served.put({"state": {}}, connector_id="other").error[3] == "connector_id"
    assert served.get(connector_instance_id="nobody").error[::3] == (404, "connector_instance_id")
    answer = served.put({"state": {"alpha": {}, "omega": {}}}, grant_id="G1")
    assert answer.error == (404, "not_found_error", "not_found", "state")
    assert served.get(grant_id="G1").result["state"] == {}


@pytest.mark.parametrize(
    "query",
    [
        "grant_id=",
        "grant_id=" + "g" * (limits.GRANT_ID_CHARACTERS + 1),
        "grant_id=G1/0123456789ab",
        "grant_id=a%00b",
        "grant_id=%ff",
        "grant_id=G1&grant_id=G2",
        "grant_id",
        "grant=G1",
        "stream=alpha",
    ],
)
def test_a_query_that_does_not_fit_addresses_nothing(served, query):
    """Above all not the owner's own cursors."""
    before = served.headwater.cursors()
    answer = served.ask("PUT", f"{served.path()}?{query}", '{"state":{"alpha":{"x":1}}}')
    assert answer.error[:3] == (400, "invalid_request_error", "invalid_request")
    assert served.headwater.cursors() == before


def test_a_grants_name_may_be_as_long_as_its_bound(served):
    """The bound itself still fits."""
    grant = "g" * limits.GRANT_ID_CHARACTERS
    assert served.put({"state": {"alpha": {"n": 1}}}, grant_id=grant).result["grant_id"] == grant
    assert served.get(grant_id=grant).result["state"] == {"alpha": {"n": 1}}


@pytest.mark.parametrize("connector_id", ["https://connectors.example/guest", "a b/ü%2F?#", "guest"])
def test_a_connectors_id_is_opaque(headwater, serve, connector_id):
    """It is decoded once, whatever it holds."""
    headwater.collect("good.sh", manifest=headwater.manifest(connector_id=connector_id))
    answer = serve().get(connector_id=connector_id).result
    assert (answer["connector_id"], answer["state"]) == (connector_id, {"alpha": {"at": "before"}})


def test_where_a_connector_has_several_instances_one_is_named(headwater, serve):
    """Without its name nothing is guessed. An instance that never ran can be addressed too."""
    (headwater.place / "repo").mkdir()
    for name in ("git/me", "git/work"):
        headwater.type("instances", "add", name, "--set", f"path={headwater.place / 'repo'}")
    served = serve()
    manifest = headwater.type("connectors", "show", "git").result
    git, stream = manifest["connector_id"], manifest["streams"][0]["stream"]
    assert served.get(connector_id=git).error == (
        400,
        "invalid_request_error",
        "invalid_request",
        "connector_instance_id",
    )
    body = json.dumps({"state": {stream: {"n": 1}}})
    put = served.ask("PUT", served.path(git, connector_instance_id="me", grant_id="G1"), body)
    assert put.result["state"] == {stream: {"n": 1}}
    assert served.get(connector_id=git, connector_instance_id="git/me", grant_id="G1").result == put.result
    assert served.get(connector_id=git, connector_instance_id="work", grant_id="G1").result["state"] == {}


def test_nothing_is_put_while_the_instance_is_collected(served):
    """The run would overwrite it at its end. Looking goes on."""
    busy = subprocess.Popen(served.headwater.guest("waits.sh"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while served.headwater.type("runs", "list", "--status", "running").result["items"] == []:
            assert busy.poll() is None
        answer = served.put({"state": {"alpha": {"n": 1}}}, grant_id="G1")
        assert answer.error == (409, "invalid_request_error", "run_active", None)
        assert served.get(grant_id="G1").result["state"] == {}
    finally:
        busy.terminate()
        busy.communicate(timeout=30)
    assert served.put({"state": {"alpha": {"n": 1}}}, grant_id="G1").status == 200


def test_nothing_is_put_over_a_run_that_was_cut_off(served):
    """Its staged cursors may still commit when it is settled."""
    busy = subprocess.Popen(
        served.headwater.guest("waits.sh"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    while served.headwater.type("runs", "list", "--status", "running").result["items"] == []:
        assert busy.poll() is None
    os.killpg(busy.pid, signal.SIGKILL)
    busy.communicate()
    while True:
        with suppress(OperationalError), Locks(served.headwater.state / "locks").alone("guest/adhoc"):
            break
    assert served.put({"state": {"alpha": {"n": 1}}}).error[:3:2] == (409, "run_active")
    served.headwater.collect("good.sh")
    assert served.put({"state": {"alpha": {"n": 1}}}).status == 200


def test_puts_at_once_wait_for_one_another(served):
    """None is refused because of another one, and none is lost."""
    answers = []
    threads = [
        threading.Thread(
            target=lambda n=n: answers.append(served.put({"state": {"alpha": {"n": n}}}, grant_id=f"G{n}"))
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 8
    assert all(served.get(grant_id=f"G{n}").result["state"] == {"alpha": {"n": n}} for n in range(8))


# What remains of a put.


def test_a_put_is_in_the_list_of_runs_and_can_be_undone(served):
    """Whoever looks at a cursor finds what wrote it; undoing brings back what it replaced."""
    before = served.headwater.cursors()
    served.put({"state": {"alpha": {"wrong": 1}}})
    run = served.headwater.type("runs", "list").result["items"][0]
    assert (run["mode"], run["status"], run["namespace"]) == ("put", "succeeded", "global")
    rows = {row["stream"]: row for row in served.headwater.type("state", "show", "guest/adhoc").result["cursors"]}
    assert rows["alpha"]["run_id"] == run["run_id"]
    assert served.headwater.type("runs", "explain", run["run_id"]).result["checkpoints"]["committed"] == ["alpha"]
    assert served.headwater.type("runs", "undo", run["run_id"]).result["cursors"] == ["alpha"]
    assert served.headwater.cursors() == before


def test_a_put_serves_nothing_that_a_schedule_owes(served):
    """Nothing was collected, so what is due stays due."""
    host = Host(Settings(served.headwater.place / "config.toml", served.headwater.state))
    programs = [host.program_of((GUESTS / "manifest.json").read_bytes(), ["true"])]
    before = host.past_runs(programs)
    assert len(before[0]) == 1
    assert served.put({"state": {stream: {"n": 1} for stream in programs[0].declaration.streams}}).status == 200
    assert host.past_runs(programs) == before


def test_the_example_of_the_reference_runs(served):
    """The Python of the page gets and puts, with nothing but the standard library."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "server.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert "http://127.0.0.1:7663" in example
    assert "https://connectors.example/guest" in example
    example = example.replace("http://127.0.0.1:7663", served.started["listening"])
    example = example.replace("https://connectors.example/guest", CONNECTOR).replace('"notes"', '"alpha"')
    environment = {"HOME": str(served.headwater.place), "PATH": os.environ["PATH"]}
    usual = served.headwater.place / ".local" / "state" / "headwater"
    usual.parent.mkdir(parents=True)
    usual.symlink_to(served.headwater.state)
    done = subprocess.run([sys.executable, "-c", example], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["{}", "{'alpha': {'page': 7}}"], done.stderr


# Who is let in.


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer x", "Basic {}", "{}", "Bearer {}x", "Bearer {} {}", "Bearer é"]
)
def test_without_the_owners_token_nothing_is_told(served, given):
    """Not even whether a path is one."""
    header = None if given is None else given.replace("{}", served.token).encode("latin-1")
    for path in (served.path(), served.path("unknown"), "/nowhere"):
        answer = served.ask("GET", path, headers={"Authorization": header})
        assert answer.error == (401, "authentication_error", "authentication_error", None)
        assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="headwater"')


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "10.0.0.1"])
def test_a_name_that_is_no_loopback_name_is_refused(served, host):
    """A page on the web that points its own name here gets nothing, with the token or without."""
    assert served.ask("GET", served.path(), headers={"Host": host}).error[:3:2] == (403, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"])
def test_loopback_names_are_answered(served, host):
    """However the client calls this machine."""
    assert served.ask("GET", served.path(), headers={"Host": host}).status == 200


def test_no_other_site_may_read_an_answer_and_nobody_keeps_it(served):
    """No CORS, nothing cached, nothing sniffed."""
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}
    for answer in (served.ask("GET", served.path(), headers=headers), served.ask("OPTIONS", "/", headers=headers)):
        assert [name for name in answer.headers if name.lower().startswith("access-control")] == []
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_token_is_made_once_for_its_owner_alone_and_shown_nowhere(served, serve):
    """It outlives the server; neither its output nor its command line nor any other file has it."""
    path = Path(served.started["token_file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(served.token) == 43
    served.put({"state": {"alpha": {"n": 1}}}, grant_id="sentinel-grant")
    assert served.token not in Path(f"/proc/{served.process.pid}/cmdline").read_text()
    _, stdout, stderr = served.stop(signal.SIGTERM)
    assert served.token not in stdout + stderr + json.dumps(served.started)
    assert "sentinel-grant" not in stdout + stderr
    files = [file for file in served.headwater.state.rglob("*") if file.is_file() and file != path]
    assert [file for file in files if served.token.encode() in file.read_bytes()] == []
    assert serve().token == served.token


@pytest.mark.parametrize(("text", "mode"), [("short\n", 0o600), ("x" * 43, 0o644), ("", 0o600)])
def test_a_token_that_protects_nothing_is_refused(headwater, text, mode):
    """A server does not start with one that others can read or guess."""
    headwater.state.mkdir()
    path = headwater.state / "owner-token"
    path.write_text(text)
    path.chmod(mode)
    answer = headwater.type("serve", "--port", "0")
    assert (answer.status, answer.failure["code"]) == (2, "invalid_configuration")


# Bounds.


def test_what_there_is_not_is_refused_in_the_same_shape(served):
    """Other paths and other methods."""
    assert served.ask("GET", "/v1/nothing").error == (404, "not_found_error", "not_found", None)
    answer = served.ask("DELETE", served.path())
    assert answer.error == (405, "invalid_request_error", "method_not_allowed", None)
    assert sorted(answer.headers["Allow"].split(", ")) == ["GET", "HEAD", "PUT"]


def test_a_body_over_its_bound_is_refused(served):
    """Whether its length is told before or not."""
    body = b'{"state":{"alpha":{"a":"' + b"x" * limits.SERVER_BODY_BYTES + b'"}}}'
    for told in (body, iter([body[: 1 << 20]] * 9)):
        try:
            status = served.ask("PUT", served.path(), told).status
        except (BrokenPipeError, ConnectionResetError):
            status = 413  # the server spoke and closed while the client was still sending
        assert status == 413
    assert served.get().status == 200


def test_a_head_over_its_bound_is_refused(served):
    """A large header, and a large path."""
    assert served.ask("GET", served.path(), headers={"X": "x" * limits.SERVER_HEAD_BYTES}).status in (400, 431)
    assert served.ask("GET", served.path("c" * limits.SERVER_HEAD_BYTES)).status in (400, 431)


def test_clients_that_say_nothing_do_not_lock_out_others(served):
    """One connection over the bound is closed at once; when the others leave, there is room again."""
    silent = [socket.create_connection((ADDRESS, served.port)) for _ in range(limits.SERVER_CONNECTIONS)]
    head = (
        f"PUT {served.path()} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nAuthorization: Bearer {served.token}"
    )
    silent[0].sendall(f"{head}\r\n\r\n{{".encode())
    silent[1].sendall(head.encode())
    over = socket.create_connection((ADDRESS, served.port))
    assert select.select([over], [], [], 10)[0] == [over]
    with pytest.raises(OSError):  # noqa: PT011 - reset
        served.get()
    silent.pop().close()
    while True:
        try:
            assert served.get().status == 200
            break
        except OSError:
            assert served.process.poll() is None
    for connection in silent:
        connection.settimeout(limits.SERVER_ASK_SECONDS + 10)
    assert silent[0].recv(12) == b"HTTP/1.1 408"
    for connection in silent[1:]:
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    for connection in [*silent, over]:
        connection.close()


# Its life.


def test_whoever_only_looks_loads_no_server(served):
    """Looking starts as quickly as before there was one."""
    words = served.headwater.words("state", "show", "guest/adhoc")[3:]
    code = (
        "import sys\nfrom headwater.cli.main import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        "heavy = {'anyio', 'starlette', 'uvicorn', 'headwater.joining.cursors'}\n"
        "sys.stderr.write(','.join(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert json.loads(done.stdout)["ok"]
    assert done.stderr == ""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_server_is_stopped_by_a_signal(served, number, status):
    """Also while a client holds a connection. One envelope on stdout, and one on stderr where it was interrupted."""
    idle = socket.create_connection((ADDRESS, served.port))
    assert served.get().status == 200
    ended, stdout, stderr = served.stop(number)
    idle.close()
    assert (ended, stdout) == (status, "")
    assert (json.loads(stderr)["error"]["data"]["code"] if stderr else None) == ("interrupted" if status else None)


def test_there_is_one_server_for_a_state_directory(served):
    """A second one says so."""
    failure = served.headwater.type("serve", "--port", "0").failure
    assert (failure["code"], failure["message"]) == ("run_active", "Another server is active here.")


def test_a_port_that_is_taken_is_refused(headwater):
    """Nothing is listened on."""
    with socket.create_server((ADDRESS, 0)) as other:
        failure = headwater.type("serve", "--port", str(other.getsockname()[1])).failure
    assert failure["code"] == "address_in_use"


def test_a_database_that_is_gone_is_no_traceback(served):
    """The answer says what is wrong, in the one shape; the next look says it again."""
    database = served.headwater.state / "headwater.db"
    database.write_bytes(b"not a database" * 100)
    for file in ("headwater.db-wal", "headwater.db-shm"):
        (served.headwater.state / file).unlink(missing_ok=True)
    assert served.get().error == (503, "api_error", "metadata_unavailable", None)
    assert served.stop(signal.SIGTERM) == (0, "", "")
