"""Going through the repositories of an account, and in each through what is new."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from headwater.connectors.github.api import Api, StoppedError, UnavailableError, items, repository_path
from headwater.connectors.github.records import Item
from headwater.sdk import StreamRun

# Repositories in a row whose list fails before the service is taken for down.
FAILURES: Final = 3
_GONE: Final = frozenset({404, 410})


class Walk:
    """One stream's walk. Each repository has a part of the cursor of its own, its place."""

    def __init__(self, stream: StreamRun, api: Api) -> None:
        self._stream, self._api = stream, api
        self._known: dict[str, dict[str, Any]] = stream.cursor.get("repositories", {})

    def save(self) -> None:
        """Save the places."""
        self._stream.save({"repositories": self._known})

    def each(self, collect: Callable[[Item, dict[str, Any]], None]) -> None:
        """Collect from each repository; `collect` moves its place. One that cannot be read stays as it was."""
        unread = failures = 0
        for repository in self._api.repositories:
            place = self._known.setdefault(str(repository["id"]), {})
            try:
                collect(repository, place)
                failures = 0
            except UnavailableError as fault:
                unread += 1
                failures += fault.answer.is_passing
                if failures >= FAILURES:
                    raise self._api.stop("provider_unavailable", "GitHub fails again and again.") from fault
        self.save()
        if unread:
            told = f"{unread} repositories could not be read; they stay as they were."
            self._stream.skip("repository_unreadable", told)

    def changed(self, repository: Item, place: dict[str, Any], *what: str, **query: str) -> Iterator[list[Item]]:
        """Yield what changed since `place["since"]`, least recent change first; the place moves behind each page.

        Pages that are counted would slip while things change. So the next page is what changed since the last change
        of this one; the count is used within one second only. What stands at the last second comes again.
        """
        path = repository_path(repository["full_name"], *what)
        query |= {"sort": "updated", "direction": "asc"}
        behind: set[tuple[int, Any]] = set()
        is_last = False
        while not is_last:
            since, etag, pages = place.get("since", ""), place.get("etag", ""), 0
            newest = since
            for answer in self._api.pages(path, etag, **query, **_after(since)):
                if answer.status == 304:
                    return
                if answer.status != 200:
                    raise UnavailableError(answer)
                found = items(answer)
                yield [item for item in found if (item["id"], item.get("updated_at")) not in behind]
                behind, pages = {(item["id"], item.get("updated_at")) for item in found}, pages + 1
                newest = max([since, *(at for item in found if isinstance(at := item.get("updated_at"), str))])
                if newest > since:
                    break
            is_last = newest == since
            # The tag of a page says nothing of others.
            place |= {"since": newest, "etag": answer.headers.get("ETag", "") if is_last and pages == 1 else ""}
            self.save()


def _after(moment: str) -> dict[str, str]:
    """Ask for changes from a second before: GitHub says that `since` means later than a time, and not whether at it."""
    try:
        since = datetime.fromisoformat(moment) - timedelta(seconds=1)
    except (ValueError, OverflowError):
        return {}
    return {"since": since.isoformat().replace("+00:00", "Z")}


def is_gone(api: Api, path: str) -> bool:
    """Say whether GitHub itself says that something is not there: a list that lacks it may have slipped."""
    return api.get(path).status in _GONE


@contextmanager
def in_order(stream: StreamRun) -> Iterator[None]:
    """Let a stream end early without failing the run: what was saved stands, and the owner is told."""
    try:
        yield
    except StoppedError as stop:
        stream.skip(stop.reason, f"{stop.message} The next run goes on from here.", hint="retry_by_runtime")
    except UnavailableError as fault:
        told = f"GitHub answered with status {fault.answer.status}; nothing of this stream was taken for gone."
        stream.skip("not_available", told, hint="upstream_unblock" if fault.answer.status == 403 else "unknown")
