"""Collects the demo's message archive over HTTP: people, messages page by page, and each message's attachments."""

import http.client
import json
from typing import Any
from urllib.parse import urlencode, urlsplit

from headwater.sdk import Connector, DetailLane, Fail, StreamRun

PAGE = 50
TRIES = 2
TIMEOUT_SECONDS = 20

connector = Connector()


class Api:
    """The provider's API, over one connection that is kept open."""

    def __init__(self, base_url: str) -> None:
        self._link = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=TIMEOUT_SECONDS)

    def get(self, path: str, **query: Any) -> tuple[int, bytes]:
        """Return (status, body); a failing service is tried again once."""
        status, body = 0, b""
        for _ in range(TRIES):
            try:
                self._link.request("GET", f"{path}?{urlencode(query)}" if query else path)
                response = self._link.getresponse()
                status, body = response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                self._link.close()
                raise Fail("The provider cannot be reached.", hint="retry_by_runtime") from error
            if status < 500:
                break
        return status, body

    def json(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the object at a path that has to be there."""
        status, body = self.get(path, **query)
        if status != 200:
            raise Fail(f"The provider answered {status}.", hint="retry_by_runtime")
        return dict(json.loads(body))


@connector.stream("people")
def people(stream: StreamRun) -> Any:
    """Collect everybody who writes: a short list, whole each time."""
    yield from Api(stream.run.options["base_url"]).json("/v1/people")["people"]
    stream.save({"whole": True})


@connector.stream("messages")
def messages(stream: StreamRun) -> None:
    """Collect messages from the last change that was seen, and what hangs on them."""
    api = Api(stream.run.options["base_url"])
    if not stream.run.wants("attachments"):
        _walk(api, stream, None)
        return
    with stream.details("attachments") as lane:
        _walk(api, stream, lane)


def _walk(api: Api, stream: StreamRun, lane: DetailLane | None) -> None:
    after = stream.cursor.get("after", "")
    seen, total = 0, None
    while True:
        page = api.json("/v1/messages", after=after, limit=PAGE)
        total = page["total"] if total is None else total
        for message in page["messages"]:
            _message(api, stream, lane, message)
            after = f"{message['updated_at']}~{message['id']}"
        seen += len(page["messages"])
        stream.save({"after": after})
        stream.progress(f"{seen:,} of {total:,} messages", count=seen, total=total)
        if page["next"] is None:
            return


def _message(api: Api, stream: StreamRun, lane: DetailLane | None, message: dict[str, Any]) -> None:
    if message.pop("deleted", False):
        stream.delete(message)
        return
    if not stream.emit(message) or lane is None:
        return
    for name in message["attachment_ids"]:
        lane.require(name)
        _attachment(api, stream, lane, name)


def _attachment(api: Api, stream: StreamRun, lane: DetailLane, name: str) -> None:
    """Fetch one attachment. What is still pending is left unaccounted: there is nothing to say of it yet."""
    status, body = api.get(f"/v1/attachments/{name}")
    if status != 200:
        lane.gap(name, "temporarily_unavailable", locator={"attachment_id": name})
        return
    described = json.loads(body)
    if described.get("pending"):
        return
    status, content = api.get(f"/v1/attachments/{name}/content")
    if status == 200:
        lane.emit({**described, "blob_ref": stream.run.blob(content, "image/svg+xml")})


connector.run()
