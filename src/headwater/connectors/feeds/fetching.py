"""Fetching a feed: conditionally, from public addresses only, bounded in bytes and in time."""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

FEED_BYTES: Final = 8 * 1024 * 1024
FETCH_SECONDS: Final = 30.0
REDIRECTS: Final = 5
WAIT_SECONDS_MAX: Final = 7 * 24 * 3600

_CHUNK_BYTES: Final = 64 * 1024
_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = {
    "User-Agent": "headwater-feeds/0.1",
    "Accept": "application/atom+xml, application/rss+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}


class Unreachable(Exception):
    """No answer came; `reason` is the name of the cause, and `passes` says whether it may be gone later."""

    def __init__(self, reason: str, *, passes: bool = True) -> None:
        self.reason, self.passes = reason, passes
        super().__init__(reason)


@dataclass(frozen=True)
class Answer:
    """What came back. `url` is where it came from, `permanent_url` where the feed lives from now on."""

    status: int
    url: str
    permanent_url: str
    headers: Message
    body: bytes = b""

    @property
    def charset(self) -> str | None:
        """What the server calls the encoding, if anything."""
        charset = self.headers.get_content_charset()
        return charset if charset and len(charset) <= 40 else None

    def wait_until(self, now: float) -> float:
        """Return before when the server wants no further request (RFC 9110, 10.2.3); 0 where it does not say."""
        text = str(self.headers.get("Retry-After") or "").strip()
        seconds = 0.0
        if text.isascii() and text.isdecimal():
            seconds = float(text[:9])
        elif text:
            with suppress(ValueError, TypeError, OverflowError):
                seconds = parsedate_to_datetime(text).timestamp() - now
        return now + min(seconds, WAIT_SECONDS_MAX) if seconds > 0 else 0.0


class Fetcher:
    """Fetches one feed at a time. Nothing is kept open, and no proxy, cookie or password is used."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    def get(self, url: str, validators: dict[str, str]) -> Answer:
        """Fetch a feed, redirects followed; raise `Unreachable` where nothing whole comes in time.

        `validators` are the headers of a conditional request (RFC 9110, 13.1).
        """
        until = time.monotonic() + FETCH_SECONDS
        here, permanent, lasting = url, url, True
        for _ in range(REDIRECTS + 1):
            answer = self._once(here, permanent, validators, until)
            target = str(answer.headers.get("Location") or "")
            if answer.status not in {301, 302, 303, 307, 308} or not target:
                return answer
            before, here = here, _joined(here, target)
            if before.startswith("https:") and not here.startswith("https:"):
                raise Unreachable("redirect_to_plain_http", passes=False)
            lasting = lasting and answer.status in {301, 308}
            permanent = here if lasting else permanent
        raise Unreachable("too_many_redirects", passes=False)

    def _once(self, url: str, permanent: str, validators: dict[str, str], until: float) -> Answer:
        parts = _parts(url)
        link = self._connected(parts, until)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        late = threading.Event()
        # Each read has a time of its own; a server that sends a byte now and then is cut off from beside.
        cutting = threading.Timer(max(0.0, until - time.monotonic()), _cut, [link.sock, late])
        cutting.daemon = True
        cutting.start()
        try:
            if isinstance(link.sock, ssl.SSLSocket):
                link.sock.do_handshake()
            link.request("GET", target, headers={**_HEADERS, **validators})
            response = link.getresponse()
            body = _content(response) if response.status == 200 else b""
            if late.is_set():
                raise TimeoutError
            return Answer(response.status, url, permanent, response.headers, body)
        except ssl.SSLCertVerificationError:
            raise Unreachable("certificate_not_trusted") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            slow = isinstance(error, TimeoutError) or late.is_set()
            raise Unreachable("timeout" if slow else "connection_failed") from None
        except zlib.error:
            raise Unreachable("broken_encoding") from None
        finally:
            cutting.cancel()
            link.close()

    def _connected(self, parts: SplitResult, until: float) -> http.client.HTTPConnection:
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        plain = self._socket(host, port, until)
        if parts.scheme == "http":
            link = http.client.HTTPConnection(host, port)
            link.sock = plain
            return link
        secure = http.client.HTTPSConnection(host, port)
        context = ssl.create_default_context()
        secure.sock = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        return secure

    def _socket(self, host: str, port: int, until: float) -> socket.socket:
        """Connect to one of a host's addresses that may be asked: the very address that was looked at."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise Unreachable("unknown_host") from None
        allowed = [row for row in found if self._allow_private or _is_public(row[4][0])]
        if not allowed:
            raise Unreachable("private_address", passes=False)
        for family, kind, protocol, _, address in allowed:
            link = socket.socket(family, kind, protocol)
            link.settimeout(max(0.1, until - time.monotonic()))
            try:
                link.connect(address)
            except OSError:
                link.close()
            else:
                return link
        raise Unreachable("connection_failed")


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in _PORTS and parts.hostname and not parts.username and not parts.password
        fits = fits and parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        fits = False
    if not fits:
        raise Unreachable("not_an_http_address", passes=False)
    return parts


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target)
    except ValueError:
        raise Unreachable("not_an_http_address", passes=False) from None


def _is_public(address: Any) -> bool:
    """Say whether an address is anybody's: those that stand for an IPv4 address count as that one."""
    try:
        ip = ipaddress.ip_address(str(address).partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or _translated(ip) or ip
    return ip.is_global and not ip.is_multicast


def _translated(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address behind one of NAT64 (RFC 6052)."""
    if ip in ipaddress.IPv6Network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


def _cut(link: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)


def _content(response: http.client.HTTPResponse) -> bytes:
    """Read a body to its end, unpacked, and never more than a feed may hold."""
    encoding = str(response.getheader("Content-Encoding") or "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise Unreachable("unknown_encoding", passes=False)
    unpacker = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    parts, size = [], 0
    while chunk := response.read(_CHUNK_BYTES):
        part = chunk if unpacker is None else unpacker.decompress(chunk, FEED_BYTES + 1 - size)
        parts.append(part)
        size += len(part)
        if size > FEED_BYTES:
            raise Unreachable("too_large", passes=False)
    if response.length or (unpacker is not None and parts and not unpacker.eof):
        raise Unreachable("cut_off")
    return b"".join(parts)
