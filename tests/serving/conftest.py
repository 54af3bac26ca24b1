"""A server of a person who has an account at Acme, and programs that ask it things."""

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from adapters.conftest import acme  # noqa: F401 - the provider
from integrating.test_service import Person

PASSWORD = {"user": "ada", "password": "correct horse"}


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: Any

    def ok(self, status: int = 200) -> Any:
        assert self.status == status, self.body
        return self.body

    @property
    def error(self) -> dict[str, Any]:
        """What a refusal says of itself; its id is that of the header."""
        assert self.body["error"]["request_id"] == self.headers["Request-Id"]
        return self.body["error"]

    @property
    def refused(self) -> tuple[int, str]:
        return self.status, self.error["code"]


class Program:
    """A program of this machine that has the owner's token, and the server that it asks."""

    def __init__(self, person: Person) -> None:
        self.person = person
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(person.words("serve", "--port", "0"), **pipes)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        started = json.loads(line)["result"]
        self.port = int(started["listening"].rpartition(":")[2])
        self.token = Path(started["token_file"]).read_text().strip()
        self.log = person.state / "server.log"

    def ask(self, method: str, path: str, body: Any = None, **headers: str | None) -> Reply:
        """Send one request. `headers` are by their names with `_` for `-`; None leaves one out."""
        sent = {"authorization": f"Bearer {self.token}", **{name.replace("_", "-"): v for name, v in headers.items()}}
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, content, {name: v for name, v in sent.items() if v is not None})
            answer = connection.getresponse()
            text = answer.read()
            return Reply(answer.status, answer.headers, json.loads(text) if text else None)
        finally:
            connection.close()

    def get(self, path: str) -> Reply:
        return self.ask("GET", f"/v1/{path}")

    def post(self, path: str, body: Any = None, **headers: str | None) -> Reply:
        return self.ask("POST", f"/v1/{path}", body, **headers)

    def sign_in(self, method: str = "password", **fields: str) -> Reply:
        asked = {"instance": "me", "fields": fields or PASSWORD}
        return self.post(f"integrations/acme-tickets/auth/{method}/start", asked)

    def connected(self) -> str:
        """Connect the account; return the connection."""
        return self.sign_in().ok()["connection"]

    def refreshed(self, connection: str) -> dict[str, Any]:
        """Refresh a connection, once the run before it has let go of the instance, and return the run when it ended."""
        while (reply := self.post(f"connections/{connection}/refresh")).status == 409:
            assert reply.error["code"] == "run_active"
        return self.ended(reply.ok(202)["sync_id"])

    def ended(self, run_id: str) -> dict[str, Any]:
        """Return a run once it has ended."""
        while (run := self.get(f"syncs/{run_id}").ok())["status"] == "running":
            assert self.process.poll() is None
        return run

    def stop(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGTERM)
        stdout, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stdout.decode(), stderr.decode()


@pytest.fixture
def person(tmp_path, acme) -> Iterator[Person]:  # noqa: F811 - the fixture
    made = Person(tmp_path, acme.endpoint)
    made.type("connectors", "enable", "acme_tickets")
    yield made
    made.close()


@pytest.fixture
def program(person) -> Iterator[Program]:
    asking = Program(person)
    yield asking
    asking.process.kill()
    asking.process.communicate()
