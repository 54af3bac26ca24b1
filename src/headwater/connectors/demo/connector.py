"""Collects the demo's message board over HTTP: people, messages page by page, and what hangs on each message."""

import http.client
import json
from collections.abc import Iterator
from time import sleep
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from headwater.sdk import Connector, DetailLane, Fail, StreamRun

PAGE = 50
TIMEOUT_SECONDS = 20
# What is waited before each further try, and the longest Retry-After that is worth waiting for within a run.
BACK_OFF_SECONDS = (0.1, 0.3)
PATIENCE_SECONDS = 2

connector = Connector()


class Answer(NamedTuple):
    """What the provider said; status 0 where it said nothing."""

    status: int = 0
    body: bytes = b""
    retry_after_seconds: int = 0

    @property
    def is_passing(self) -> bool:
        """Whether the fault may be gone after a while."""
        return self.status in {0, 429} or self.status >= 500


class Api:
    """The provider's API, over one connection that is kept open. No proxy is ever used."""

    def __init__(self, stream: StreamRun) -> None:
        url = urlsplit(stream.run.options.get("base_url", ""))
        if url.scheme != "http" or not url.netloc:
            raise Fail("base_url is not an http:// address.", retryable=False, hint="manual_action_required")
        self._link = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT_SECONDS)

    def get(self, path: str, **query: str | int) -> Answer:
        """Return the answer at a path. A passing fault is tried again twice, unless the provider asks for more time."""
        target = f"{path}?{urlencode(query)}" if query else path
        answer = self._once(target)
        for wait in BACK_OFF_SECONDS:
            if not answer.is_passing or answer.retry_after_seconds > PATIENCE_SECONDS:
                break
            sleep(max(wait, answer.retry_after_seconds))
            answer = self._once(target)
        if answer.status == 0:
            raise Fail("The provider cannot be reached.", hint="retry_by_runtime")
        return answer

    def json(self, path: str, **query: str | int) -> dict[str, Any]:
        """Return the object at a path that has to be there."""
        answer = self.get(path, **query)
        if answer.status != 200:
            raise Fail(
                f"The provider answered {answer.status}.",
                retryable=answer.is_passing,
                hint="retry_by_runtime" if answer.is_passing else "unknown",
            )
        return dict(json.loads(answer.body))

    def _once(self, target: str) -> Answer:
        try:
            self._link.request("GET", target)
            response = self._link.getresponse()
            wait = response.getheader("Retry-After", "")
            return Answer(response.status, response.read(), int(wait) if wait.isdecimal() else 0)
        except (OSError, http.client.HTTPException):
            self._link.close()
            return Answer()


@connector.stream("people")
def people(stream: StreamRun) -> Iterator[dict[str, Any]]:
    """Collect everybody who writes: a short list, whole each time."""
    everybody = Api(stream).json("/v1/people")["people"]
    yield from everybody
    stream.save({"whole": True})
    stream.progress(f"{len(everybody)} people", count=len(everybody), total=len(everybody))


@connector.stream("messages")
def messages(stream: StreamRun) -> None:
    """Collect the messages that changed since the cursor, and what hangs on them."""
    if not stream.run.wants("attachments"):
        _walk(Api(stream), stream, None)
        return
    with stream.details("attachments") as lane:
        _walk(Api(stream), stream, lane)


@connector.stream("attachments")
def attachments(stream: StreamRun) -> None:
    """Fetch the attachments that a run asks for by name, without their messages: so a gap is tried again."""
    if stream.run.wants("messages"):
        return
    if stream.resources is None:
        stream.skip("scope_not_supported", "Attachments come with their messages, or by name.")
        return
    api, lane = Api(stream), stream.alone("messages")
    for name in sorted(stream.resources):
        _attachment(api, stream, lane, name)


def _walk(api: Api, stream: StreamRun, lane: DetailLane | None) -> None:
    """Go through the pages; a page's cursor is saved once its messages and their attachments were sent."""
    cursor, seen, total = stream.cursor, 0, None
    while True:
        page = api.json("/v1/messages", limit=PAGE, **cursor)
        total = page["remaining"] if total is None else total
        for message in page["messages"]:
            _message(api, stream, lane, message)
            cursor = {"updated_since": message["updated_at"], "after": page["cursor"]}
        seen += len(page["messages"])
        stream.save(cursor)
        stream.progress(f"{seen:,} of {total:,} messages", count=seen, total=total)
        if page["next"] is None:
            return


def _message(api: Api, stream: StreamRun, lane: DetailLane | None, message: dict[str, Any]) -> None:
    if message.get("deleted"):
        stream.delete({"id": message["id"], "sent_at": message["sent_at"]})
    elif stream.emit(message) and lane is not None:
        for name in message["attachment_ids"]:
            _attachment(api, stream, lane, name)


def _attachment(api: Api, stream: StreamRun, lane: DetailLane, name: str) -> None:
    """Fetch one attachment. What is still pending is left unaccounted: there is nothing to say of it yet."""
    lane.require(name)
    path = f"/v1/attachments/{quote(name, safe='')}"
    answer = api.get(path)
    described = json.loads(answer.body) if answer.status == 200 else {}
    if answer.status == 200 and "id" in described:
        answer = api.get(f"{path}/content")
    if answer.status != 200:
        _gap(lane, name, answer)
    elif described.get("id") == name:
        lane.emit({**described, "blob_ref": stream.run.blob(answer.body, described["mime_type"])})


def _gap(lane: DetailLane, name: str, answer: Answer) -> None:
    """Report what cannot be had, with all that a later run needs to ask again."""
    lane.gap(
        name,
        "temporarily_unavailable" if answer.is_passing else "not_available",
        locator={"attachment_id": name},
        retryable=answer.is_passing,
        error={"status": answer.status, "retry_after_seconds": answer.retry_after_seconds},
    )


connector.run()
