"""The HTTP client of the connectors against servers that misbehave: bounds hold, and a half is no whole."""

import gzip
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.message import Message
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from headwater.connectors.web import client
from headwater.connectors.web.client import Answer, Client, endpoint_of, origin_of, retry_after
from headwater.sdk import Fail

Script = Callable[[socket.socket, str], None]


@contextmanager
def listening(*scripts: Script, wrapped: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve each connection by the next script, the last one again and again; note the heads that came."""
    heads: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            waiting = list(scripts)
            while True:
                try:
                    link, _ = server.accept()
                except OSError:
                    return
                script = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                threading.Thread(target=served, args=(link, script), daemon=True).start()

        def served(link: socket.socket, script: Script) -> None:
            if wrapped is not None:
                try:
                    link = wrapped.wrap_socket(link, server_side=True)
                except OSError:
                    return
            with link, suppress(OSError):
                while head := request(link):
                    heads.append(head)
                    script(link, head)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heads


def request(link: socket.socket) -> str:
    """Read one request whole, with its body; nothing where the other side is gone."""
    read = b""
    while (end := read.find(b"\r\n\r\n")) < 0:
        if not (part := link.recv(65536)):
            return read.decode()
        read += part
    length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", read[:end])
    while length is not None and len(read) < end + 4 + int(length[1]):
        if not (part := link.recv(65536)):
            break
        read += part
    return read.decode()


def answering(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> Script:
    """Return a script that gives one answer to each request."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]

    def script(link: socket.socket, _head: str) -> None:
        link.sendall("\r\n".join(lines).encode() + body)
        if length is not None:
            link.shutdown(socket.SHUT_RDWR)

    return script


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "BACK_OFF_SECONDS", (0.0, 0.0))


def to(url: str, **headers: str) -> Client:
    """Return a client that asks one origin."""
    return Client(headers, lambda origin: origin == origin_of(url))


def test_a_connection_is_kept_and_no_proxy_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names a proxy and a netrc; neither is looked at."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with listening(answering(b"yes")) as (url, heads):
        asking = to(url)
        assert [asking.ask("GET", f"{url}/{n}").body for n in range(3)] == [b"yes"] * 3
        assert [head.split()[1] for head in heads] == ["/0", "/1", "/2"]
        assert not any("authorization" in head.lower() for head in heads)


def test_a_kept_connection_that_was_closed_costs_no_try() -> None:
    """Servers close what is idle; the request goes out anew at once."""

    def once(link: socket.socket, head: str) -> None:
        answering(b"first")(link, head)
        link.shutdown(socket.SHUT_RDWR)

    with listening(once, answering(b"second")) as (url, _):
        asking = to(url)
        assert asking.ask("GET", url, tries=1).body == b"first"
        assert asking.ask("GET", url, tries=1).body == b"second"


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_half_a_body_is_no_answer(packed: bool) -> None:
    """However the other side ends it."""
    body = gzip.compress(b"a whole body" * 100) if packed else b"half"
    headers = ("Content-Encoding: gzip",) if packed else ()
    cut = answering(body[: len(body) // 2], *headers, length=len(body) // 2 if packed else 100)
    with listening(cut) as (url, heads):
        answer = to(url).ask("GET", url)
        assert (answer.status, answer.body) == (0, b"")
        assert len(heads) == 3


def test_a_bomb_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unpacked counts, and the rest is not unpacked."""
    monkeypatch.setattr(client, "BODY_BYTES", 100_000)
    bomb = gzip.compress(bytes(50_000_000))
    with listening(answering(bomb, "Content-Encoding: gzip")) as (url, _):
        answer = to(url).ask("GET", url, tries=1)
        assert (answer.status, answer.fault) == (0, "its answer is too large")


def test_an_exact_size_is_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound itself is allowed."""
    monkeypatch.setattr(client, "BODY_BYTES", 1000)
    with listening(answering(bytes(1000)), answering(bytes(1001))) as (url, _):
        assert to(url).ask("GET", url, tries=1).status == 200
        assert to(url).ask("GET", url, tries=1).fault == "its answer is too large"


@pytest.mark.parametrize(
    "beginning", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nx"]
)
def test_a_server_that_drips_or_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch, beginning: bytes) -> None:
    """The whole exchange has a time, so that a byte now and then does not hold it for ever."""
    monkeypatch.setattr(client, "EXCHANGE_SECONDS", 0.3)
    over = threading.Event()

    def drip(link: socket.socket, _head: str) -> None:
        link.sendall(beginning)
        while beginning and not over.wait(0.02):
            link.sendall(b"x")
        over.wait(20)

    with listening(drip) as (url, heads):
        answer = to(url).ask("GET", url)
        over.set()
    assert (answer.status, answer.fault) == (0, "it took too long")
    assert len(heads) == 1


@pytest.mark.parametrize("target", ["http://localhost:9/x", "https://127.0.0.1:1/", "ftp://127.0.0.1/", "//evil.test/"])
def test_a_redirect_to_another_origin_is_not_followed(target: str) -> None:
    """The credentials stay where they belong."""
    with listening(answering(b"", f"Location: {target}", status="302 Found")) as (url, heads):
        answer = to(url, Authorization="Bearer x").ask("GET", url)
        assert answer.status == 302
        assert len(heads) == 1


def test_redirects_within_an_origin_end() -> None:
    """One that leads in a circle is its own answer after a few."""
    with listening(answering(b"", "Location: /again", status="307 Temporary Redirect")) as (url, heads):
        assert to(url).ask("REPORT", url, b"body").status == 307
        assert len([head for head in heads if head.startswith("REPORT")]) == client.REDIRECTS + 1


@pytest.mark.parametrize(("status", "asked"), [("503 X", 3), ("429 X", 3), ("404 X", 1), ("401 X", 1), ("501 X", 3)])
def test_only_what_may_pass_is_tried_again(status: str, asked: int) -> None:
    """Three times in all."""
    with listening(answering(b"", status=status)) as (url, heads):
        assert to(url).ask("GET", url).status == int(status[:3])
        assert len(heads) == asked


def test_a_wait_that_is_too_long_is_not_waited_for() -> None:
    """The caller hears of it."""
    with listening(answering(b"", "Retry-After: 3600", status="503 X")) as (url, heads):
        answer = to(url).ask("GET", url)
        assert retry_after(answer) == 3600
        assert len(heads) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0),
        ("Mon, 30 Nov 2026 10:00:30 GMT", 30.0),
        ("Mon, 30 Nov 2026 09:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_by_the_provider_s_own_clock(text: str, seconds: float | None) -> None:
    """RFC 9110, 10.2.3: seconds, or a date."""
    headers = Message()
    headers["Date"], headers["Retry-After"] = "Mon, 30 Nov 2026 10:00:00 GMT", text
    assert retry_after(Answer(503, "", headers)) == seconds


@pytest.mark.parametrize(
    ("options", "is_allowed"),
    [
        ({"endpoint": "https://dav.example.org/x"}, True),
        ({"endpoint": "http://127.0.0.1:5232"}, True),
        ({"endpoint": "http://[::1]:5232/"}, True),
        ({"endpoint": "http://dav.example.org"}, False),
        ({"endpoint": "http://dav.example.org", "allow_http": True}, True),
        ({"endpoint": "http://127.0.0.1.example.org"}, False),
        ({"endpoint": "https://me:secret@dav.example.org"}, False),
        ({"endpoint": "https://dav.example.org:notaport"}, False),
        ({"endpoint": "https://dav.example.org/?q"}, False),
        ({"endpoint": ""}, False),
        ({"endpoint": 7}, False),
        ({}, False),
    ],
    ids=json.dumps,
)
def test_where_credentials_may_go(options: dict[str, Any], is_allowed: bool) -> None:
    """Over TLS, or to this machine, or where the owner says so."""
    if is_allowed:
        assert endpoint_of(options)
    else:
        with pytest.raises(Fail) as failed:
            endpoint_of(options)
        assert "secret" not in str(failed.value)


@contextmanager
def over_tls(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Serve over TLS with a certificate for a name, signed by itself."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    begun = datetime.now(UTC) - timedelta(days=1)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, begun, begun + timedelta(days=3))
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(name))])
    signed = made.add_extension(names, critical=True).sign(key, hashes.SHA256())
    certificate = folder / "certificate.pem"
    encoded = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    certificate.write_bytes(signed.public_bytes(Encoding.PEM) + key.private_bytes(*encoded))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def script(link: socket.socket, head: str) -> None:
        answering(b"yes")(link, head)

    with listening(script, wrapped=context) as (url, _):
        yield url.replace("http://", "https://"), certificate


@pytest.mark.parametrize(
    ("name", "trusted", "is_answered"),
    [("127.0.0.1", True, True), ("127.0.0.1", False, False), ("127.0.0.2", True, False)],
    ids=["trusted", "by nobody known", "for another host"],
)
def test_a_certificate_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, trusted: bool, is_answered: bool
) -> None:
    """By the system's authorities, or those that SSL_CERT_FILE names, and for the host; it is asked once."""
    with over_tls(tmp_path, name) as (url, certificate):
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        asking = to(url)
        answer = asking.ask("GET", url)
    assert (answer.body, answer.fault) == ((b"yes", "") if is_answered else (b"", "its certificate cannot be trusted"))
    assert asking.requests == 1


def test_an_address_of_version_6_is_written_as_one() -> None:
    """In brackets, wherever an origin is made of it."""
    assert origin_of("http://[::1]/x") == "http://[::1]:80"
    assert client._opened(origin_of("http://[::1]:5232/")).host == "::1"
