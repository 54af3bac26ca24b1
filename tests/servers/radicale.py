"""A real CalDAV and CardDAV server: Radicale, on loopback, with its files in a folder of the tests."""

import base64
import http.client
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest
from servers.running import SERVERS, free_port, needed, running

_START_SECONDS = 60
_PAUSE_SECONDS = 0.05
_TIMEOUT_SECONDS = 60
_numbers = count(1)
_CARDDAV = "urn:ietf:params:xml:ns:carddav"


@dataclass(frozen=True)
class Owner:
    """Somebody with an account."""

    port: int
    name: str
    password: str

    @property
    def endpoint(self) -> str:
        """Where the server is."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
        """Send a request in this account, and return status and body."""
        pair = base64.b64encode(f"{self.name}:{self.password}".encode()).decode()
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_SECONDS)
        link.request(method, path, body.encode(), {"Authorization": f"Basic {pair}", **headers})
        response = link.getresponse()
        answer = response.status, response.read().decode()
        link.close()
        return answer

    def make_calendar(self, name: str) -> str:
        """Make a calendar and return its path."""
        path = f"/{self.name}/{quote(name)}/"
        named = f"<D:set><D:prop><D:displayname>{escape(name)}</D:displayname></D:prop></D:set>"
        body = f'<C:mkcalendar xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">{named}</C:mkcalendar>'
        assert self.ask("MKCALENDAR", path, body)[0] == 201
        return path

    def make_address_book(self, name: str) -> str:
        """Make an address book and return its path."""
        path = f"/{self.name}/{quote(name)}/"
        kinds = f'<D:resourcetype><D:collection/><C:addressbook xmlns:C="{_CARDDAV}"/></D:resourcetype>'
        named = f"<D:displayname>{escape(name)}</D:displayname>"
        body = f'<D:mkcol xmlns:D="DAV:"><D:set><D:prop>{kinds}{named}</D:prop></D:set></D:mkcol>'
        assert self.ask("MKCOL", path, body)[0] == 201
        return path

    def put(self, path: str, text: str) -> None:
        """Write an object."""
        kind = "text/vcard" if path.endswith(".vcf") else "text/calendar"
        status, said = self.ask("PUT", path, text.replace("\n", "\r\n"), **{"Content-Type": f"{kind}; charset=utf-8"})
        assert status in {201, 204}, said

    def delete(self, path: str) -> None:
        """Delete an object, or a collection with all that it has."""
        assert self.ask("DELETE", path)[0] in {200, 204}


@dataclass(frozen=True)
class Radicale:
    """The server that runs."""

    port: int
    folder: Path

    def register(self, password: str = "a password of the tests") -> Owner:
        """Make an account with a name of its own."""
        name = f"owner{next(_numbers)}"
        with (self.folder / "users").open("a") as users:
            users.write(f"{name}:{password}\n")
        return Owner(self.port, name, password)

    def files(self, path: str) -> Path:
        """Return the folder in which a collection's objects lie."""
        return self.folder / "collections" / "collection-root" / path.strip("/")


@pytest.fixture(scope="session")
def radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    """The server, once for all the tests of a worker: each test makes accounts of its own."""
    python = SERVERS / "bin" / "python"
    needed(SERVERS / "bin" / "radicale", "Radicale")
    server = Radicale(free_port(), tmp_path_factory.mktemp("radicale"))
    (server.folder / "users").touch()
    (server.folder / "config").write_text(
        f"[server]\nhosts = 127.0.0.1:{server.port}\n"
        f"[auth]\ntype = htpasswd\nhtpasswd_filename = {server.folder / 'users'}\nhtpasswd_encryption = plain\n"
        "delay = 0\n"
        f"[storage]\nfilesystem_folder = {server.folder / 'collections'}\n"
    )
    log = server.folder / "log"
    with running([python, "-m", "radicale", "--config", server.folder / "config"], log) as process:
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(server.port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(_PAUSE_SECONDS)
        yield server


def _answers(port: int) -> bool:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        link.request("GET", "/.web/")
        return link.getresponse().status < 500
    except OSError:
        return False
    finally:
        link.close()
