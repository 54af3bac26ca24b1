"""RSS and Atom feeds: each is asked for only if it changed, and one that fails costs no other."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.connectors.feeds.document import NotAFeed, read_feed
from headwater.connectors.feeds.fetching import Answer, Fetcher, Unreachable
from headwater.connectors.feeds.records import entry_records, feed_record, mark
from headwater.sdk import Connector, Enumeration, Fail, RunContext, StreamRun

SAVE_EVERY: Final = 20
_VERSION: Final = 1

connector = Connector()


@dataclass
class Place:
    """What is kept of a feed: where it lives, how it is asked for, and a mark of each entry that it shows."""

    url: str
    validators: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    wait_until: float = 0.0


class Missed(Exception):
    """A feed could not be had this time; `reason` is the name of the cause."""

    def __init__(self, reason: str, *, passes: bool, reached: bool = True, status: int | None = None) -> None:
        self.reason, self.passes, self.reached, self.status = reason, passes, reached, status
        super().__init__(reason)


@connector.stream("entries")
def entries(stream: StreamRun) -> None:
    """Collect the entries that are new or changed; what a feed no longer shows is kept."""
    if not stream.run.wants("feeds"):
        Walk(stream, None).all()
        return
    with stream.enumeration("feeds") as evidence:
        Walk(stream, evidence).all()


@connector.stream("feeds")
def feeds(stream: StreamRun) -> Iterator[dict[str, Any]]:
    """Collect the feeds alone where the run wants no entries: so a gap is tried again."""
    if stream.run.wants("entries"):
        return
    fetcher = fetcher_of(stream.run)
    for url in urls_of(stream.run):
        if stream.resources is None or url in stream.resources:
            try:
                yield _read(fetcher, Place(url), url, 0)[0]
            except Missed as cause:
                stream.skip(cause.reason, f"{url} could not be read.")


class Walk:
    """One pass over the feeds, from what the last one kept of them."""

    def __init__(self, stream: StreamRun, evidence: Enumeration | None) -> None:
        self._stream, self._evidence = stream, evidence
        self._text_characters = int(stream.run.options.get("text_characters", 100_000))
        self._basis = {"version": _VERSION, "text_characters": self._text_characters}
        same = all(stream.cursor.get(name) == value for name, value in self._basis.items())
        saved: dict[str, Any] = stream.cursor["feeds"] if same else {}
        self._places = {url: Place(**saved.get(url, {"url": url})) for url in urls_of(stream.run)}

    def all(self) -> None:
        """Ask each feed. Where none can be reached, it is not they that are gone: the run fails."""
        if self._evidence is not None:
            self._evidence.consider(*self._places)
        fetcher, reached, count = fetcher_of(self._stream.run), False, len(self._places)
        for number, url in enumerate(self._places, 1):
            try:
                self._one(fetcher, url)
                reached = True
            except Missed as cause:
                reached |= cause.reached
                self._missed(url, cause)
            if number % SAVE_EVERY == 0 and reached:
                self._save()
            self._stream.progress(f"{number:,} of {count:,} feeds asked", count=number, total=count)
        if not reached:
            raise Fail("None of the feeds can be reached.", hint="retry_by_runtime")
        self._save()

    def _save(self) -> None:
        self._stream.save({**self._basis, "feeds": {url: vars(place) for url, place in self._places.items()}})

    def _one(self, fetcher: Fetcher, url: str) -> None:
        place = self._places[url]
        about, found, changed = _read(fetcher, place, url, self._text_characters)
        for record in found:
            name, now = record["id"], mark(record)
            if place.marks.get(name) != now:
                self._stream.emit(record)
            changed.marks[name] = now
        # Only what the feed shows now is marked: a cursor that remembered all would grow without end.
        self._places[url] = changed
        if self._evidence is not None:
            if about == place.about:
                self._evidence.unchanged(url)
            else:
                self._evidence.emit(about)

    def _missed(self, url: str, cause: Missed) -> None:
        told = {"status": cause.status} if cause.status else None
        if self._evidence is None:
            self._stream.skip(cause.reason, f"{url} could not be read.")
        else:
            self._evidence.gap(url, cause.reason, retryable=cause.passes, error=told)


def _read(fetcher: Fetcher, place: Place, url: str, bound: int) -> tuple[dict[str, Any], Any, Place]:
    """Ask a feed; return its record, its entries if they may have changed, and what is kept of it now."""
    if place.about.get("status") == "gone":
        return place.about, (), place
    if place.wait_until > time.time():
        raise Missed("asked_to_wait", passes=True)
    answer = _answer(fetcher, place)
    if answer.status == 304:
        kept = Place(
            answer.permanent_url, place.validators, {**place.about, "current_url": answer.permanent_url}, place.marks
        )
        return kept.about, (), kept
    if answer.status == 410:
        about = {
            **dict.fromkeys(_ABOUT),
            "url": url,
            "current_url": answer.permanent_url,
            "lossy": False,
            **place.about,
        }
        gone = Place(place.url, {}, {**about, "status": "gone"}, place.marks)
        return gone.about, (), gone
    if answer.status != 200:
        place.wait_until = answer.wait_until(time.time())
        passes = answer.status in {404, 408, 425, 429} or answer.status >= 500
        raise Missed("rate_limited" if answer.status == 429 else "refused", passes=passes, status=answer.status)
    try:
        feed = read_feed(answer.body, answer.charset)
    except NotAFeed as error:
        raise Missed("not_a_feed", passes=True) from error
    about = feed_record(url, answer.permanent_url, feed)
    kept = Place(answer.permanent_url, _validators(answer), about)
    return about, entry_records(url, answer.url, feed, bound), kept


_ABOUT: Final = ("kind", "version", "title", "description", "link", "language", "source_updated_at")


def _answer(fetcher: Fetcher, place: Place) -> Answer:
    try:
        return fetcher.get(place.url, place.validators)
    except Unreachable as cause:
        raise Missed(cause.reason, passes=cause.passes, reached=not cause.passes) from None


def _validators(answer: Answer) -> dict[str, str]:
    """Return the headers by which the next run asks only for what changed."""
    pairs = {"If-None-Match": answer.headers.get("ETag"), "If-Modified-Since": answer.headers.get("Last-Modified")}
    return {name: str(value) for name, value in pairs.items() if value and len(value) <= 1_000 and value.isprintable()}


def urls_of(run: RunContext) -> list[str]:
    """Return the addresses that the owner named, each once."""
    urls = run.options.get("urls")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise Fail("Set the option `urls` to the feeds' addresses.", retryable=False, hint="manual_action_required")
    return list(dict.fromkeys(urls))


def fetcher_of(run: RunContext) -> Fetcher:
    """Return what fetches for a run."""
    return Fetcher(allow_private=run.options.get("allow_private") is True)


if __name__ == "__main__":
    connector.run()
