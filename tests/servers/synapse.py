"""A real Matrix homeserver: Synapse, one process, SQLite, on loopback, without limits of rate."""

import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from servers.running import SERVERS, free_port, needed, running

SERVER_NAME = "localhost"
SHARED_SECRET = "the registration secret of a test server"
_CLIENT = "/_matrix/client/v3"
_START_SECONDS = 60
_PAUSE_SECONDS = 0.05
_TIMEOUT_SECONDS = 60
_UNLIMITED = {"per_second": 100_000, "burst_count": 100_000}
_open = build_opener(ProxyHandler({})).open
_numbers = count(1)


class Refused(Exception):
    """What the homeserver answered instead."""

    def __init__(self, status: int, said: Mapping[str, Any]) -> None:
        self.status, self.said = status, said
        super().__init__(f"{status} {said}")


@dataclass(frozen=True)
class User:
    """Somebody with a session at the homeserver."""

    base_url: str
    name: str
    password: str
    user_id: str
    access_token: str

    def call(self, method: str, path: str, body: Any = None, **query: str | int) -> Any:
        """Call the client-server API with this session."""
        return call(self.base_url, method, path, body, token=self.access_token, **query)

    def make_room(self, name: str, *invited: "User", **settings: Any) -> str:
        """Make a room; those who are invited join it."""
        asked = {"name": name, "preset": "public_chat", "invite": [user.user_id for user in invited], **settings}
        room = str(self.call("POST", f"{_CLIENT}/createRoom", asked)["room_id"])
        for user in invited:
            user.join(room)
        return room

    def join(self, room: str) -> None:
        """Join a room."""
        self.call("POST", f"{_CLIENT}/join/{quote(room)}", {})

    def send(self, room: str, content: str | Mapping[str, Any], kind: str = "m.room.message") -> str:
        """Send an event and return its id; a text is the body of a message."""
        body = {"msgtype": "m.text", "body": content} if isinstance(content, str) else content
        path = f"{_CLIENT}/rooms/{quote(room)}/send/{quote(kind)}/{next(_numbers)}"
        return str(self.call("PUT", path, body)["event_id"])

    def edit(self, room: str, event: str, text: str) -> str:
        """Replace the text of a message (m.replace)."""
        newer = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": event}
        return self.send(
            room, {"msgtype": "m.text", "body": f"* {text}", "m.new_content": newer, "m.relates_to": relation}
        )

    def react(self, room: str, event: str, with_what: str) -> str:
        """React to a message."""
        relation = {"rel_type": "m.annotation", "event_id": event, "key": with_what}
        return self.send(room, {"m.relates_to": relation}, "m.reaction")

    def redact(self, room: str, event: str, reason: str = "") -> str:
        """Redact an event."""
        path = f"{_CLIENT}/rooms/{quote(room)}/redact/{quote(event)}/{next(_numbers)}"
        return str(self.call("PUT", path, {"reason": reason} if reason else {})["event_id"])

    def upload(self, content: bytes, mime_type: str, name: str = "file") -> str:
        """Upload media, and return its mxc: address."""
        url = f"{self.base_url}/_matrix/media/v3/upload?filename={quote(name)}"
        headers = {"Authorization": f"Bearer {self.access_token}", "Content-Type": mime_type}
        with _open(Request(url, content, headers, method="POST"), timeout=_TIMEOUT_SECONDS) as answer:
            return str(json.load(answer)["content_uri"])

    def log_out(self) -> None:
        """End the session: its access token is unknown from then on."""
        self.call("POST", f"{_CLIENT}/logout", {})


def call(base_url: str, method: str, path: str, body: Any = None, *, token: str = "", **query: str | int) -> Any:
    """Call an endpoint, and return its answer; raise `Refused` where it is none."""
    url = f"{base_url}{path}?{urlencode(query)}" if query else f"{base_url}{path}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    content = None if body is None else json.dumps(body).encode()
    try:
        with _open(Request(url, content, headers, method=method), timeout=_TIMEOUT_SECONDS) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            raise Refused(error.code, json.load(error)) from None


@dataclass(frozen=True)
class Synapse:
    """The homeserver that runs."""

    base_url: str
    folder: Path

    def register(self, name: str = "", password: str = "a password of the tests") -> User:
        """Make an account, with a name of its own where none is given, and sign in."""
        name = name or f"user{next(_numbers)}"
        nonce = call(self.base_url, "GET", "/_synapse/admin/v1/register")["nonce"]
        signed = "\0".join([nonce, name, password, "notadmin"])
        mac = hmac.new(SHARED_SECRET.encode(), signed.encode(), hashlib.sha1).hexdigest()
        asked = {"nonce": nonce, "username": name, "password": password, "admin": False, "mac": mac}
        made = call(self.base_url, "POST", "/_synapse/admin/v1/register", asked)
        return User(self.base_url, name, password, made["user_id"], made["access_token"])

    def log_in(self, user: User) -> User:
        """Make another session of an account, by its password."""
        asked = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": user.name},
            "password": user.password,
        }
        made = call(self.base_url, "POST", f"{_CLIENT}/login", asked)
        return User(self.base_url, user.name, user.password, made["user_id"], made["access_token"])


@contextmanager
def synapse_in(folder: Path, **settings: Any) -> Iterator[Synapse]:
    """Run a homeserver in a folder; `settings` are members of its homeserver.yaml."""
    port = free_port()
    path = folder / "homeserver.yaml"
    path.write_text(json.dumps({**_configuration(folder, port), **settings}))
    log = folder / "log"
    words = [SERVERS / "bin" / "synapse_homeserver", "-c", path]
    with running([*words, "--generate-keys"], log) as process:
        assert process.wait(_START_SECONDS) == 0, log.read_text()
    synapse = Synapse(f"http://127.0.0.1:{port}", folder)
    with running(words, log) as process:
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(synapse.base_url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(_PAUSE_SECONDS)
        yield synapse


def _answers(base_url: str) -> bool:
    try:
        with _open(f"{base_url}/health", timeout=_TIMEOUT_SECONDS):
            return True
    except URLError:
        return False


def _configuration(folder: Path, port: int) -> dict[str, Any]:
    """Return a homeserver.yaml; JSON is YAML."""
    limits = ("message", "registration", "admin_redaction", "media_create", "room_creation", "joins_per_room")
    return {
        "server_name": SERVER_NAME,
        "report_stats": False,
        "pid_file": str(folder / "pid"),
        "signing_key_path": str(folder / "signing.key"),
        "media_store_path": str(folder / "media"),
        "registration_shared_secret": SHARED_SECRET,
        "macaroon_secret_key": "for tests only",
        "form_secret": "for tests only",
        "trusted_key_servers": [],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "listeners": [
            {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": [{"names": ["client"]}]}
        ],
        "bcrypt_rounds": 4,
        "presence": {"enabled": True},
        "url_preview_enabled": False,
        **{f"rc_{name}": _UNLIMITED for name in limits},
        "rc_joins": {"local": _UNLIMITED, "remote": _UNLIMITED},
        "rc_invites": {"per_room": _UNLIMITED, "per_user": _UNLIMITED, "per_issuer": _UNLIMITED},
        "rc_login": {"address": _UNLIMITED, "account": _UNLIMITED, "failed_attempts": _UNLIMITED},
    }


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    """The homeserver, once for all the tests of a worker: each test makes accounts and rooms of its own."""
    needed(SERVERS / "bin" / "synapse_homeserver", "Synapse")
    with synapse_in(tmp_path_factory.mktemp("synapse")) as homeserver:
        yield homeserver
