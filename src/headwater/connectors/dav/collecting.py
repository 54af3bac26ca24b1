"""The walk of both connectors: the collections of an account, and in each what is new, changed and gone."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from headwater.connectors.dav.account import Account, Service, prop
from headwater.connectors.dav.changes import CTAG, ETAG, TOKEN, NotListedError, changes_since
from headwater.connectors.dav.xml import GarbledError, Resource, written
from headwater.connectors.web.client import Answer, failure
from headwater.sdk import DetailLane, StreamRun

# Members that one request asks for; members after which a cursor is saved; rounds until a list and its members agree.
PAGE: Final = 50
SAVE_EVERY: Final = 500
ROUNDS: Final = 3
# Requests in a row that fail before the server is taken for down.
FAILURES: Final = 12
# A record holds its text twice, once as it came: a larger one would not fit on a line of the protocol.
RAW_CHARACTERS: Final = 8_000_000

CollectionRecord = Callable[[Resource], dict[str, Any]]
MemberRecord = Callable[[str, str, str, str], dict[str, Any]]


class StoppedError(Exception):
    """The server is asked no more in this run; the answer says why."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__()


class Walk:
    """One run over the account. `record_of` makes a member's record of its path, collection, entity tag and text."""

    def __init__(self, stream: StreamRun, service: Service, record_of: MemberRecord) -> None:
        self._stream, self._service, self._record_of = stream, service, record_of
        self._account = Account(stream.run, service)
        self._known: dict[str, dict[str, Any]] = stream.cursor.get("collections", {})
        self._failures = self._fetched = self._unsaved = 0

    def collect(self, child: str, record_of: CollectionRecord) -> None:
        """Collect the collections, and their members where the run wants them."""
        collections, named = self._account.collections()
        for resource in collections:
            data = record_of(resource)
            known = self._known.setdefault(resource.path, {"mark": "", "token": "", "items": {}})
            if known["mark"] != (mark := _mark(data)):
                self._stream.emit(data)
                known["mark"] = mark
        wanted = self._stream.run.wants(child)
        for path in sorted(self._known.keys() - named):
            self._drop(path, self._stream.run.stream(child) if wanted else None)
        if wanted:
            with self._stream.details(child) as lane:
                self._each(collections, self._stream.run.stream(child), lane)
        self._save()
        self._stream.progress(
            f"{self._fetched:,} fetched with {self._account.requests:,} requests", count=self._fetched
        )

    def fetch(self, members: StreamRun, parent: str) -> None:
        """Fetch the members that a run asks for by name, without their collections: so a gap is tried again."""
        lane, wanted = members.alone(parent), sorted(members.resources or ())
        collections, _ = self._account.collections()
        for collection in collections:
            inside = [path for path in wanted if path.startswith(collection.path.rstrip("/") + "/")]
            try:
                missing = self._members(collection, inside, lane, {})
            except StoppedError as stop:
                raise failure(stop.answer, self._service.what) from stop
            for path in missing:
                lane.gap(path, "not_available", locator={"path": path})

    def _each(self, collections: list[Resource], members: StreamRun, lane: DetailLane) -> None:
        """Collect from each collection, until the server is down: what was fetched stands, and the next run goes on."""
        for collection in collections:
            if self._stream.resources is not None and collection.path not in self._stream.resources:
                continue
            try:
                self._collection(collection, members, lane)
            except NotListedError as fault:
                self._skip(
                    "collection_not_listed", "A collection could not be listed; it stays as it was", fault.answer
                )
            except GarbledError as error:
                self._skip("collection_not_listed", "A collection could not be listed; it stays as it was", str(error))
            except StoppedError as stop:
                if not self._fetched:
                    raise failure(stop.answer, self._service.what) from stop
                reason = "rate_limited" if stop.answer.status == 429 else "provider_unavailable"
                self._skip(reason, "The server gives no more; the next run goes on from here", stop.answer)
                return

    def _drop(self, path: str, members: StreamRun | None) -> None:
        """Delete a collection that a whole list of the account lacks. Until members are wanted too, it stays known."""
        items = self._known[path]["items"]
        if members is None and items:
            return
        if members is not None:
            self._delete(path, set(items), items, members)
        del self._known[path]
        self._stream.delete({"id": path})

    def _collection(self, collection: Resource, members: StreamRun, lane: DetailLane) -> None:
        known = self._known[collection.path]
        items: dict[str, str] = known["items"]
        standing = collection.text(TOKEN) or collection.text(CTAG)
        unfinished = "" in items.values()
        for _ in range(ROUNDS):
            if standing and standing == known["token"] and not unfinished:
                return
            changes = changes_since(self._account, collection, known["token"])
            gone = {_name(collection.path, path) for path in changes.gone}
            if changes.is_whole:
                gone |= items.keys() - {_name(collection.path, path) for path in changes.listed}
            self._delete(collection.path, gone, items, members)
            wanted = self._wanted(collection, changes.listed, items, members)
            missing = self._members(collection, wanted, lane, items)
            # What the list names and the server does not have was deleted in between: the next list says so.
            known["token"] = changes.token
            standing, unfinished = "", bool(missing)
            self._save_if_due(len(items))
            if not missing:
                return
        for path in missing:
            lane.gap(path, "not_available", locator={"path": path})

    def _wanted(
        self, collection: Resource, listed: dict[str, str], items: dict[str, str], members: StreamRun
    ) -> list[str]:
        """Return the paths to fetch: with another tag than they were collected with, or missed the last time."""
        missed = (_path(collection.path, name) for name, tag in items.items() if not tag)
        changed = (
            path for path, tag in listed.items() if not tag or items.get(_name(collection.path, path)) != _tag(tag)
        )
        wanted = dict.fromkeys((*missed, *changed))
        return [path for path in wanted if members.resources is None or path in members.resources]

    def _delete(self, collection: str, gone: set[str], items: dict[str, str], members: StreamRun) -> None:
        for name in sorted(gone):
            items.pop(name, None)
            members.delete({"id": _path(collection, name)})

    def _members(self, collection: Resource, paths: list[str], lane: DetailLane, items: dict[str, str]) -> list[str]:
        """Fetch members page by page, and return those that the server no longer has."""
        missing: list[str] = []
        waiting = iter(paths)
        while page := list(islice(waiting, PAGE)):
            for path, resource in self._page(collection, page, tries=3):
                if isinstance(resource, Resource) and resource.status == 404:
                    missing.append(path)
                else:
                    self._member(collection, path, resource, lane, items)
            self._save_if_due(len(items))
            self._stream.progress(f"{self._fetched:,} fetched", count=self._fetched)
        return missing

    def _page(self, collection: Resource, paths: list[str], *, tries: int) -> Iterator[tuple[str, Resource | Answer]]:
        """Ask for members; a page that fails is halved, until only what cannot be had fails."""
        hrefs = "".join(f'<href xmlns="DAV:">{written(path)}</href>' for path in paths)
        namespace, _, local = self._service.multiget[1:].partition("}")
        asked = f'<{local} xmlns="{namespace}">{prop((ETAG, self._service.data))}{hrefs}</{local}>'
        answer = self._account.ask("REPORT", collection.url, asked, "1", tries=tries)
        with suppress(GarbledError):
            if answer.status == 207:
                found = {resource.path: resource for resource in self._account.read(answer).resources}
                self._failures = 0
                yield from ((path, found.get(path) or Resource(path, 404)) for path in paths)
                return
        self._failures += 1
        if self._failures > FAILURES or answer.status == 429:
            raise StoppedError(answer)
        if len(paths) == 1:
            yield paths[0], answer
            return
        middle = len(paths) // 2
        yield from self._page(collection, paths[:middle], tries=1)
        yield from self._page(collection, paths[middle:], tries=1)

    def _member(
        self, collection: Resource, path: str, found: Resource | Answer, lane: DetailLane, items: dict[str, str]
    ) -> None:
        """Send a member's record, or say that it is missing; then it is asked for again the next time."""
        name, self._unsaved = _name(collection.path, path), self._unsaved + 1
        if not isinstance(found, Resource) or not (text := found.text(self._service.data)):
            items[name] = ""
            told = {"status": found.status}
            lane.gap(path, "temporarily_unavailable", locator={"path": path}, error=told)
            return
        tag = found.text(ETAG)
        items[name] = _tag(tag)
        if len(text) > RAW_CHARACTERS:
            lane.gap(path, "too_large", locator={"path": path}, retryable=False)
        else:
            lane.emit(self._record_of(path, collection.path, tag, text))
            self._fetched += 1

    def _skip(self, reason: str, message: str, why: Answer | str) -> None:
        told = why if isinstance(why, str) else f"status {why.status}" if why.status else why.fault
        self._stream.skip(reason, f"{message} ({told}).", hint="retry_by_runtime")

    def _save_if_due(self, length: int) -> None:
        # A cursor over very many members is long: it is saved as seldom as it is long.
        if self._unsaved >= max(SAVE_EVERY, length):
            self._save()

    def _save(self) -> None:
        self._unsaved = 0
        self._stream.save({"collections": self._known})


def _name(collection: str, path: str) -> str:
    """Return a member's name below its collection; names stand in a cursor, so they are short."""
    return path.removeprefix(collection if collection.endswith("/") else collection + "/")


def _path(collection: str, name: str) -> str:
    return name if name.startswith("/") else f"{collection.rstrip('/')}/{name}"


def _tag(etag: str) -> str:
    """Return what stands for an entity tag in the cursor, never empty."""
    return hashlib.sha256(etag.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _mark(data: dict[str, Any]) -> str:
    return _tag(json.dumps(data, sort_keys=True))
