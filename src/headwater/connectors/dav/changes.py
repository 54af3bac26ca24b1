"""What is new in a collection: by its sync token (RFC 6578), or from a list of all that it has."""

from dataclasses import dataclass, field
from typing import Final

from headwater.connectors.dav.account import CALENDAR_SERVER, Account
from headwater.connectors.dav.xml import DAV, Multistatus, Resource, written
from headwater.connectors.web.client import Answer

PAGES: Final = 10_000
ETAG: Final = DAV + "getetag"
TOKEN: Final = DAV + "sync-token"
CTAG: Final = CALENDAR_SERVER + "getctag"
_TYPE: Final = DAV + "resourcetype"
_PROP: Final = '<prop xmlns="DAV:"><getetag/><resourcetype/></prop>'


class NotListedError(Exception):
    """The server did not list the collection: what it has now is unknown."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__()


@dataclass
class Changes:
    """Members and their entity tags; those that the server states gone; whether the list is the whole collection."""

    token: str = ""
    is_whole: bool = False
    listed: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def take(self, collection: Resource, resource: Resource) -> bool:
        """Note a member; return whether the resource says that the list goes on (RFC 6578, 3.6)."""
        path = resource.path
        if path == collection.path or path.rstrip("/") == collection.path.rstrip("/"):
            return resource.status == 507
        if resource.status == 404:
            self.gone.add(path)
            self.listed.pop(path, None)
        elif not resource.holds(_TYPE, DAV + "collection"):
            self.gone.discard(path)
            self.listed[path] = resource.text(ETAG)
        return False


def changes_since(account: Account, collection: Resource, token: str) -> Changes:
    """Return what changed since a token. Where there is none, or it holds no more, all is listed.

    A server that knows no tokens, or will not begin with one, is asked for all of its members and their tags.
    Raise `NotListedError` where no list came whole.
    """
    if collection.text(TOKEN):
        for since in dict.fromkeys((token, "")):
            found = _synchronised(account, collection, since)
            if found is not None:
                return found
    listed = account.found(collection.url, (ETAG, _TYPE), "1")
    if isinstance(listed, Answer):
        raise NotListedError(listed)
    changes = Changes(collection.text(CTAG), is_whole=True)
    for resource in listed.resources:
        if changes.take(collection, resource):
            raise NotListedError(Answer(507, collection.url))
    return changes


def _synchronised(account: Account, collection: Resource, since: str) -> Changes | None:
    """Follow sync-collection reports to their end; None where the server refuses the token, or the report itself."""
    changes = Changes(since, is_whole=not since)
    for _ in range(PAGES):
        answer = account.ask("REPORT", collection.url, _report(changes.token), "0")
        if answer.status != 207:
            if answer.is_passing and answer.status != 501:
                raise NotListedError(answer)
            return None
        page: Multistatus = account.read(answer)
        goes_on = sum(changes.take(collection, resource) for resource in page.resources) > 0
        if not page.sync_token or (goes_on and page.sync_token == changes.token):
            return None
        changes.token = page.sync_token
        if not goes_on:
            return changes
    raise NotListedError(Answer(507, collection.url))


def _report(token: str) -> str:
    return (
        f'<sync-collection xmlns="DAV:"><sync-token>{written(token)}</sync-token>'
        f"<sync-level>1</sync-level>{_PROP}</sync-collection>"
    )
