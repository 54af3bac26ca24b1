"""What an account has on GitHub: its repositories and stars, and the issues, pull requests, comments and releases."""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from headwater.connectors.github import records
from headwater.connectors.github.api import (
    Api,
    StoppedError,
    UnavailableError,
    api_of,
    items,
    next_page,
    repository_path,
)
from headwater.connectors.github.records import Item
from headwater.connectors.github.walking import Walk, in_order, is_gone
from headwater.sdk import Connector, DetailLane, StreamRun

STARS: Final = "application/vnd.github.star+json"

connector = Connector()


@connector.stream("user")
def user(stream: StreamRun) -> None:
    """Collect the account itself."""
    with in_order(stream):
        etag = stream.cursor.get("etag", "")
        answer = api_of(stream.run).get("user", etag)
        if answer.status == 200:
            stream.emit(records.user(answer.json()))
            etag = answer.headers.get("ETag", "")
        elif answer.status != 304:
            raise UnavailableError(answer)
        stream.save({"etag": etag})


@connector.stream("repositories")
def repositories(stream: StreamRun) -> None:
    """Collect the repositories that are new or changed; one that is gone by GitHub's own word is deleted."""
    with in_order(stream):
        api = api_of(stream.run)
        found = [records.repository(item) for item in api.repositories]
        _compared(stream, found, lambda name, _known: is_gone(api, f"repositories/{name}"))


@connector.stream("starred")
def starred(stream: StreamRun) -> None:
    """Collect the stars; one that was taken back is deleted."""
    with in_order(stream):
        api, found = api_of(stream.run), []
        for page in api.pages("user/starred", accept=STARS, sort="created", direction="asc"):
            if page.status != 200:
                raise UnavailableError(page)
            stars = items(page, "repo")
            found += [records.starred(item) for item in stars if isinstance(item["repo"].get("full_name"), str)]
        _compared(stream, found, lambda _name, known: is_gone(api, f"user/starred/{quote(known, safe='/')}"))


def _compared(stream: StreamRun, found: list[Item], is_gone: Callable[[str, str], bool]) -> None:
    """Emit what is new or changed since the cursor was saved; delete what is missing and said to be gone.

    The cursor holds a mark and the last name of each. `is_gone` is asked with an id and that name.
    """
    known: dict[str, list[str]] = stream.cursor.get("marks", {})
    for data in found:
        name, marked = str(data["id"]), [records.mark(data), data["full_name"]]
        if known.get(name) != marked:
            stream.emit(data)
            known[name] = marked
    for name in sorted(known.keys() - {str(data["id"]) for data in found}):
        if is_gone(name, known[name][1]):
            stream.delete({"id": int(name)})
            del known[name]
    stream.save({"marks": known})


@connector.stream("issues")
def issues(stream: StreamRun) -> None:
    """Collect issues that are new or changed, and of those that are pull requests what only they have."""
    api = api_of(stream.run)
    if stream.run.wants("pull_requests"):
        with stream.details("pull_requests") as lane, in_order(stream):
            _issues(stream, api, lane)
    else:
        with in_order(stream):
            _issues(stream, api, None)


def _issues(stream: StreamRun, api: Api, lane: DetailLane | None) -> None:
    walk, count = Walk(stream, api), 0

    def collect(repository: Item, place: dict[str, Any]) -> None:
        nonlocal count
        missed: list[int] = place.setdefault("missed", [])
        if lane is not None:
            for number in list(missed):
                _pull_request(api, lane, repository, number, missed)
        for page in walk.changed(repository, place, "issues", state="all"):
            for item in page:
                data = records.issue(item, repository)
                if stream.emit(data) and lane is not None and data["is_pull_request"]:
                    _pull_request(api, lane, repository, data["number"], missed)
            count += len(page)
            stream.progress(f"{count:,} issues, {api.requests:,} requests", count=count)

    walk.each(collect)


@connector.stream("pull_requests")
def pull_requests(stream: StreamRun) -> None:
    """Fetch the pull requests that a run asks for by name, without their issues: so a gap is tried again."""
    if stream.run.wants("issues"):
        return
    if stream.resources is None:
        stream.skip("scope_not_supported", "Pull requests come with the issues, or by name.")
        return
    with in_order(stream):
        api, lane = api_of(stream.run), stream.alone("issues")
        known = {str(repository["id"]): repository for repository in api.repositories}
        for key in sorted(stream.resources):
            of, _, number = key.partition("/")
            if of in known and number.isdecimal():
                _pull_request(api, lane, known[of], int(number), [])


def _pull_request(api: Api, lane: DetailLane, repository: Item, number: int, missed: list[int]) -> None:
    """Fetch one pull request, or report the gap. Why nothing can be asked any more is told by the next list.

    `missed` is kept for the next run: a host does not try a gap again by itself where it would have to ask the owner.
    """
    key, status = records.pull_key(number, repository), 0
    if number in missed:
        missed.remove(number)
    try:
        answer = api.get(repository_path(repository["full_name"], "pulls", number))
        status = answer.status
        if status == 200:
            lane.emit(records.pull_request(answer.json(), key, repository))
            return
    except StoppedError:
        pass
    except UnavailableError as fault:
        status = fault.answer.status
    passing = status == 0 or status >= 500
    if passing:
        missed.append(number)
    lane.gap(
        key,
        "temporarily_unavailable" if passing else "not_available",
        locator={"repository_id": repository["id"], "number": number},
        retryable=passing,
        error={"status": status},
    )


@connector.stream("comments")
def comments(stream: StreamRun) -> None:
    """Collect comments that are new or changed."""
    api = api_of(stream.run)
    walk, count = Walk(stream, api), 0

    def collect(repository: Item, place: dict[str, Any]) -> None:
        nonlocal count
        for page in walk.changed(repository, place, "issues", "comments"):
            for item in page:
                stream.emit(records.comment(item, repository))
            count += len(page)
            stream.progress(f"{count:,} comments, {api.requests:,} requests", count=count)

    with in_order(stream):
        walk.each(collect)


@connector.stream("releases")
def releases(stream: StreamRun) -> None:
    """Collect releases that are new or changed; one that is gone by GitHub's own word is deleted."""
    api = api_of(stream.run)

    def collect(repository: Item, place: dict[str, Any]) -> None:
        path, marks = repository_path(repository["full_name"], "releases"), place.setdefault("marks", {})
        found: set[str] = set()
        etag = ""
        for page in api.pages(path, place.get("etag", "")):
            if page.status == 304:
                return
            if page.status != 200:
                raise UnavailableError(page)
            # The tag of a page says nothing of the others.
            etag = page.headers.get("ETag", "") if not found and not next_page(page) else ""
            for data in (records.release(item, repository) for item in items(page)):
                name, mark = str(data["id"]), records.mark(data)
                found.add(name)
                if marks.get(name) != mark:
                    stream.emit(data)
                    marks[name] = mark
        for name in sorted(marks.keys() - found):
            if is_gone(api, f"{path}/{name}"):
                stream.delete({"id": int(name)})
                del marks[name]
        place["etag"] = etag

    with in_order(stream):
        Walk(stream, api).each(collect)


connector.run()
