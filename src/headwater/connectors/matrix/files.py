"""The files of messages: each is a detail of its message, with its bytes, or a gap that says why not."""

import re
from typing import TYPE_CHECKING, Any, Final

from headwater.sdk import DetailLane, Fail, RunContext

if TYPE_CHECKING:
    from headwater.connectors.matrix import events
    from headwater.connectors.matrix.homeserver import Homeserver, Refused
else:
    import events
    from homeserver import Homeserver, Refused

MEDIA_BYTES: Final = 50 * 1024 * 1024
_MIME_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")
_LASTING: Final = ("no_address", "too_large")
_KEPT: Final = ("room_id", "event_id", "source_created_at")


class Files:
    """Fetches what messages carry."""

    def __init__(self, run: RunContext, server: Homeserver, lane: DetailLane) -> None:
        self._run, self._server, self._lane = run, server, lane
        self._limit = int(run.options.get("media_bytes", MEDIA_BYTES))
        self._done: set[tuple[str, str]] = set()

    def fetch(self, message: dict[str, Any]) -> None:
        """Emit the file of a message's record, if it carries one; where it was redacted, the file is gone too."""
        key = (message["room_id"], message["event_id"])
        described = events.file(message)
        if message["redacted"]:
            self._run.stream("files").delete({name: message[name] for name in _KEPT})
        elif described is not None and key not in self._done:
            self._done.add(key)
            self._lane.require(list(key))
            self._fetch(described)

    def again(self, room: str, event: str) -> None:
        """Fetch the file of one message, whose key is all that is known of it."""
        found = self._server.event(room, event)
        if found is None or not events.is_event(found):
            self._gap(room, event, Refused(404))
        else:
            self.fetch(events.message(room, found))

    def _fetch(self, described: dict[str, Any]) -> None:
        kind = (described["mime_type"] or "").lower()
        mime_type = kind if _MIME_TYPE.fullmatch(kind) else "application/octet-stream"
        try:
            if (described["declared_bytes"] or 0) > self._limit:
                raise Refused(reason="too_large")
            blob = self._run.blob(self._server.media(described["url"], self._limit), mime_type)
        except Refused as refusal:
            self._gap(described["room_id"], described["event_id"], refusal)
        except Fail:
            # The page of history that it stands on comes again: until then it is known to be missing.
            self._gap(described["room_id"], described["event_id"], Refused(reason="temporarily_unavailable"))
            raise
        else:
            self._lane.emit({**described, "mime_type": mime_type, "size_bytes": blob["size_bytes"], "blob_ref": blob})

    def _gap(self, room: str, event: str, refusal: Refused) -> None:
        """Report what cannot be had, with all that a later run needs to ask again."""
        lasting = refusal.reason in _LASTING or 300 <= refusal.status < 500
        reason = refusal.reason or ("not_available" if lasting else "temporarily_unavailable")
        told = {"status": refusal.status} if refusal.status else None
        locator = {"room_id": room, "event_id": event}
        self._lane.gap([room, event], reason, locator=locator, retryable=not lasting, error=told)
