"""One account on a WebDAV server: signing in, asking, and finding its collections (RFC 6764, 4791, 6352)."""

import base64
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from headwater.connectors.dav.xml import DAV, GarbledError, Multistatus, Resource, multistatus
from headwater.connectors.web.client import Answer, Client, endpoint_of, entered, failure, origin_of
from headwater.sdk import Fail, RunContext

CALENDAR_SERVER: Final = "{http://calendarserver.org/ns/}"
_CREDENTIALS: Final = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "title": "User name", "minLength": 1},
        "password": {"type": "string", "title": "Password", "format": "password", "minLength": 1},
    },
    "required": ["username", "password"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Service:
    """One of the two services over WebDAV. Names are `{namespace}local`."""

    name: str
    home: str
    kind: str
    data: str
    multiget: str
    properties: tuple[str, ...]

    @property
    def what(self) -> str:
        """The beginning of a sentence about the server."""
        return f"The {self.name} server"


class Account:
    """The owner's account. Each method raises `Fail` where the run cannot go on."""

    def __init__(self, run: RunContext, service: Service) -> None:
        self._service = service
        self._endpoint = endpoint_of(run.options)
        host = urlsplit(self._endpoint).hostname
        answer = run.ask("credentials", f"Sign in to {host} ({service.name}).", _CREDENTIALS)
        pair = base64.b64encode(f"{entered(answer, 'username')}:{entered(answer, 'password')}".encode())
        self._client = Client({"Authorization": f"Basic {pair.decode()}"}, self._admits)

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        return self._client.requests

    def _admits(self, origin: str) -> bool:
        return is_admitted(self._endpoint, origin)

    def ask(self, method: str, url: str, body: str, depth: str, *, tries: int = 3) -> Answer:
        """Send a WebDAV request. Raise `Fail` where the server refuses the credentials."""
        headers = {"Depth": depth, "Content-Type": "application/xml; charset=utf-8"}
        document = f'<?xml version="1.0" encoding="utf-8"?>\n{body}'
        answer = self._client.ask(method, url, document.encode(), headers, tries=tries)
        if answer.status == 401:
            raise failure(answer, self._service.what)
        return answer

    def found(self, url: str, properties: tuple[str, ...], depth: str = "0") -> Multistatus | Answer:
        """Ask for properties; return the answer itself where it is no multistatus."""
        answer = self.ask("PROPFIND", url, f'<propfind xmlns="DAV:">{prop(properties)}</propfind>', depth)
        return self.read(answer) if answer.status == 207 else answer

    def read(self, answer: Answer) -> Multistatus:
        """Read a multistatus, or raise `GarbledError`."""
        return multistatus(answer.body, answer.url)

    def collections(self) -> tuple[list[Resource], set[str]]:
        """Return the collections of this service in all homes of the account, and every path that the homes name."""
        found: dict[str, Resource] = {}
        named: set[str] = set()
        try:
            for home in self._homes():
                for resource in self._listed(home):
                    named.add(resource.path)
                    is_ours = resource.holds(DAV + "resourcetype", self._service.kind)
                    if is_ours and self._admits(origin_of(resource.url)):
                        found[resource.path] = resource
        except GarbledError as error:
            told = f"{self._service.what} sent an answer that cannot be read: {error}."
            raise Fail(told, code="provider_protocol_error") from error
        return [found[path] for path in sorted(found)], named

    def _listed(self, home: str) -> list[Resource]:
        """Return what is in a home. A list that is not whole would make what it lacks look gone."""
        listed = self.found(home, (DAV + "resourcetype", *self._service.properties), "1")
        if isinstance(listed, Answer):
            raise failure(listed, self._service.what)
        for resource in listed.resources:
            if resource.status >= 500:
                raise failure(Answer(resource.status, home), self._service.what)
        return listed.resources

    def _homes(self) -> list[str]:
        """Find the homes: from what the endpoint is, else from the well-known address, through the principal."""
        well_known = urljoin(self._endpoint, f"/.well-known/{self._service.name.lower()}")
        places = [self._endpoint, well_known]
        if urlsplit(self._endpoint).path in {"", "/"}:
            places.reverse()
        for place in (*places, urljoin(self._endpoint, "/")):
            found = self.found(place, (DAV + "current-user-principal", self._service.home))
            if isinstance(found, Multistatus):
                if homes := self._homes_of(found.resources):
                    return homes
            elif found.is_passing:
                raise failure(found, self._service.what)
        raise Fail(
            f"{self._service.what} names no home for this account: set `endpoint` to the address that its help gives.",
            retryable=False,
            code="provider_protocol_error",
            hint="manual_action_required",
        )

    def _homes_of(self, resources: list[Resource]) -> list[str]:
        homes = [home for resource in resources for home in resource.hrefs(self._service.home)]
        principals = [found for item in resources for found in item.hrefs(DAV + "current-user-principal")]
        for principal in principals if not homes else ():
            found = self.found(principal, (self._service.home,))
            if isinstance(found, Multistatus):
                homes += [home for resource in found.resources for home in resource.hrefs(self._service.home)]
        return list(dict.fromkeys(homes))


def is_admitted(endpoint: str, origin: str) -> bool:
    """Whether the password may go to an origin: the endpoint's, or over https a host under the same parent domain.

    A large provider spreads its accounts: what `caldav.icloud.com` knows lies on `p42-caldav.icloud.com`.
    """
    if origin == origin_of(endpoint):
        return True
    known, other = urlsplit(endpoint), urlsplit(origin)
    parent = (known.hostname or "").partition(".")[2]
    is_domain = "." in parent and not parent.replace(".", "").isdecimal()
    return is_domain and known.scheme == other.scheme == "https" and (other.hostname or "").endswith(f".{parent}")


def prop(properties: tuple[str, ...]) -> str:
    """Write a `prop` element that asks for properties."""
    asked = []
    for name in properties:
        namespace, _, local = name[1:].partition("}")
        asked.append(f'<{local} xmlns="{namespace}"/>')
    return f'<prop xmlns="DAV:">{"".join(asked)}</prop>'
