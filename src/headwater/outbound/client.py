"""The one HTTP client for providers: one request, one answer, and everything about it bounded.

Certificates are checked. No redirect is followed, no cookie is kept and nothing is sent twice. No proxy, netrc or other
setting of the surroundings has a say. The address is checked after the name was resolved and is the one that is
connected to, so that a name cannot stand for a public address first and a private one then (INT-453, INT-493).
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Any, Final, Self

import httpx2

from headwater import clock, limits
from headwater.aside import aside
from headwater.connect.failures import FailureCode
from headwater.errors import refuse
from headwater.outbound.waiting import http_date, retry_after

_HEADERS: Final = {"user-agent": "headwater", "accept": "application/json", "accept-encoding": "identity"}
Body = Mapping[str, str] | bytes | None
_NAT64: Final = IPv6Network("64:ff9b::/96")
_UNICAST: Final = IPv6Network("2000::/3")  # all that is given out (RFC 4291 2.4); the rest is local, or stands for more


@dataclass(frozen=True)
class Reach:
    """Where the requests of one instance may go.

    `hosts` are the declared ones; None allows every public host. With `private`, which only the instance's owner
    says, addresses of this machine and its networks are reached as well, and those of this machine without TLS: by
    requests to `origin` alone, where there is one, for other URLs were written by somebody else.
    With `certificates`, in PEM, those are trusted and no others.
    """

    hosts: frozenset[str] | None = None
    private: bool = False
    origin: str | None = None
    certificates: str | None = None


@dataclass(frozen=True)
class Bounds:
    """What one request may take: seconds from the name's lookup to the last byte, and bytes of the answer's body."""

    seconds: float = limits.OUTBOUND_SECONDS
    answer_bytes: int = limits.OUTBOUND_ANSWER_BYTES


@dataclass(frozen=True)
class Answer:
    """What a provider answered: what it says is foreign, and may hold secrets.

    `date` is the time by its clock, `media_type` the type of the body in lower case, without its parameters, and
    `location` where a redirect leads: none is followed.
    """

    status: int
    body: bytes = field(repr=False)
    retry_after: int | None = None
    date: datetime | None = None
    media_type: str = ""
    location: str | None = field(default=None, repr=False)


class Unanswered(Exception):
    """No whole answer came. With `sent`, the provider may have acted on the request all the same.

    With `too_large`, what it answered is more than is taken.
    """

    def __init__(self, code: FailureCode, *, sent: bool, too_large: bool = False) -> None:
        super().__init__(code)
        self.code: FailureCode = code
        self.sent = sent
        self.too_large = too_large


class _Unconnected(Unanswered):
    """No connection, so that another address of the same name may be tried."""


@dataclass(frozen=True)
class _Request:
    """What is sent. `begun` is set when the first byte of it leaves."""

    verb: str
    url: str
    headers: Mapping[str, str]
    body: Body
    bounds: Bounds
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def trace(self, event: str, _: object) -> None:
        """Watch the HTTP library at work."""
        if event.endswith(".send_request_headers.started"):
            self.begun.set()


class Client:
    """Sends requests for one instance. Used as a context, it keeps connections open from one request to the next."""

    def __init__(self, reach: Reach, bounds: Bounds | None = None) -> None:
        self._reach = reach
        self._bounds = Bounds() if bounds is None else bounds
        self._kept: dict[str, httpx2.AsyncClient] | None = None

    async def __aenter__(self) -> Self:
        self._kept = {}
        return self

    async def __aexit__(self, *_: object) -> None:
        kept, self._kept = self._kept, None
        for connections in (kept or {}).values():
            await connections.aclose()

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Read."""
        return await self._request(_Request("GET", url, headers or {}, None, self._bounds))

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form, once."""
        return await self._request(_Request("POST", url, headers or {}, form, self._bounds))

    async def send(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes, bounds: Bounds | None = None
    ) -> Answer:
        """Send a request as it stands, once."""
        return await self._request(_Request(verb, url, headers, body, bounds or self._bounds))

    async def _request(self, asked: _Request) -> Answer:
        try:
            async with asyncio.timeout(asked.bounds.seconds):
                addresses = await self._checked_addresses(asked.url)
                for address in addresses[:-1]:
                    with suppress(_Unconnected):
                        return await self._exchange(asked, address)
                return await self._exchange(asked, addresses[-1])
        except TimeoutError:
            raise Unanswered("provider_timeout", sent=asked.begun.is_set()) from None

    async def _checked_addresses(self, url: str) -> list[str]:
        try:
            named = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError):
            raise Unanswered("provider_protocol_error", sent=False) from None
        allowed = self._reach.hosts is None or named.host in self._reach.hosts
        if named.scheme not in ("https", "http") or not named.host or not allowed:
            raise Unanswered("provider_protocol_error", sent=False)
        tls = named.scheme == "https"
        addresses = await _resolved(named.host, named.port or (443 if tls else 80))
        reach = self._reach if self._is_owners(named) else replace(self._reach, private=False)
        if not all(_may_reach(address, reach, tls=tls) for address in addresses):
            raise Unanswered("provider_protocol_error", sent=False)
        return addresses[: limits.OUTBOUND_ADDRESSES]

    def _is_owners(self, named: httpx2.URL) -> bool:
        """Whether a URL leads to where the instance's owner said."""
        if self._reach.origin is None:
            return True
        said = httpx2.URL(self._reach.origin)
        return (named.scheme, named.host, named.port) == (said.scheme, said.host, said.port)

    async def _exchange(self, asked: _Request, address: str) -> Answer:
        named = httpx2.URL(asked.url)
        timeout = httpx2.Timeout(asked.bounds.seconds, connect=limits.OUTBOUND_CONNECT_SECONDS)
        try:
            async with self._connections(named.host) as client:
                request = client.build_request(
                    asked.verb,
                    named.copy_with(host=address),
                    headers={**_HEADERS, **_lowered(asked.headers), "host": named.netloc.decode("ascii")},
                    **_content(asked.body),
                    timeout=timeout,
                    extensions={"sni_hostname": named.host, "trace": asked.trace},
                )
                return await _answer(client, request, asked.bounds)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            slow = isinstance(error, httpx2.ConnectTimeout)
            raise _Unconnected("provider_timeout" if slow else "provider_unavailable", sent=False) from None
        except httpx2.LocalProtocolError:
            raise Unanswered("provider_protocol_error", sent=False) from None
        except httpx2.TimeoutException:
            raise Unanswered("provider_timeout", sent=True) from None
        except httpx2.RemoteProtocolError:
            raise Unanswered("provider_protocol_error", sent=True) from None
        except httpx2.TransportError:
            raise Unanswered("provider_unavailable", sent=True) from None

    @asynccontextmanager
    async def _connections(self, host: str) -> AsyncIterator[httpx2.AsyncClient]:
        """Have connections to a host: those that are kept are of one name, for what is kept was proven for a name."""
        if self._kept is not None and host in self._kept:
            yield self._kept[host]
            return
        client = httpx2.AsyncClient(verify=self._trusted, trust_env=False, cookies=_no_cookies())
        if self._kept is not None:
            self._kept[host] = client
            yield client
            return
        async with client:
            yield client

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        """The certificates of the instance, or of the system: where the system has them, not where a variable says."""
        if self._reach.certificates is None:
            places = ssl.get_default_verify_paths()
            system = places.openssl_cafile if Path(places.openssl_cafile).exists() else None
            return ssl.create_default_context(cafile=system, capath=places.openssl_capath)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=self._reach.certificates)
        except (OSError, ValueError):
            raise refuse("invalid_configuration", "The provider's certificates cannot be used.") from None
        return context


def _no_cookies() -> CookieJar:
    """Return what keeps no cookie: one that an answer sets is no part of the next request."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _content(body: Body) -> dict[str, Any]:
    """Return how httpx2 names a body: `data` is a form, `content` bytes as they are."""
    return {"content": body or None} if isinstance(body, bytes) else {"data": body}


async def _answer(client: httpx2.AsyncClient, request: httpx2.Request, bounds: Bounds) -> Answer:
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Unanswered("provider_protocol_error", sent=True)
        body = BytesIO()  # which hands its bytes out without another copy of them
        async for part in response.aiter_raw():
            body.write(part)
            if body.tell() > bounds.answer_bytes:
                raise Unanswered("provider_protocol_error", sent=True, too_large=True)
        return Answer(
            status=response.status_code,
            body=body.getvalue(),
            retry_after=retry_after(response.headers.get_list("retry-after"), clock.now()),
            date=http_date(response.headers.get("date", "")),
            media_type=response.headers.get("content-type", "").partition(";")[0].strip().lower(),
            location=response.headers.get("location"),
        )
    finally:
        await response.aclose()


async def _resolved(host: str, port: int) -> list[str]:
    try:
        async with asyncio.timeout(limits.OUTBOUND_CONNECT_SECONDS):
            found = await aside(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except TimeoutError:
        raise Unanswered("provider_timeout", sent=False) from None
    except (OSError, UnicodeError):
        raise Unanswered("provider_unavailable", sent=False) from None
    return [str(address[0]) for *_, address in found]


def _may_reach(address: str, reach: Reach, *, tls: bool) -> bool:
    """Whether an address may be connected to: a public one over TLS, or what the owner of the instance allows."""
    ip = _behind(ip_address(address.partition("%")[0]))
    if ip.is_multicast or ip.is_unspecified:
        return False
    if ip.is_global and (ip.version == 4 or ip in _UNICAST):
        return tls
    return reach.private and (tls or ip.is_loopback)


def _behind(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 one only wraps."""
    if isinstance(ip, IPv4Address):
        return ip
    translated = IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None
    return ip.ipv4_mapped or ip.sixtofour or translated or ip
