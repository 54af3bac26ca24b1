"""Pages of a list: how long one is, and a cursor that is of use for the same list of the same owner, and no other."""

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request

from headwater import limits
from headwater.errors import refuse
from headwater.server.answers import Refusal
from headwater.server.asking import query_of

Place = TypeVar("Place", str, int)
_LIMIT: Final = re.compile(r"[1-9][0-9]{0,15}")
_PAGE: Final = frozenset({"limit", "cursor"})


class Asked:
    """What a request wants of a list: its own parameters, and which page."""

    def __init__(self, request: Request, known: Sequence[str] = ()) -> None:
        given = query_of(request, {*known, *_PAGE})
        self.cursor = given.pop("cursor", None)
        limit = given.pop("limit", str(limits.SERVER_PAGE_DEFAULT))
        if not _LIMIT.fullmatch(limit):
            raise Refusal(400, "invalid_request", "It must be a positive number.", "limit")
        self._is_clamped = int(limit) > limits.SERVER_PAGE_MAX
        self.limit = min(int(limit), limits.SERVER_PAGE_MAX)
        self.given: Mapping[str, str] = given
        self._bound = [request.scope["path"], os.geteuid(), [list(one) for one in sorted(given.items())]]

    def behind(self, kind: type[Place]) -> Place | None:
        """Return the place that this list's page begins behind, None for its beginning; else `stale_cursor`."""
        if self.cursor is None:
            return None
        try:
            bound, place = msgspec.json.decode(urlsafe_b64decode(self.cursor.encode()), type=tuple[Any, Any])
        except (ValueError, RecursionError):
            bound, place = None, None
        if bound != self._bound or type(place) is not kind:
            raise refuse("stale_cursor")
        return place

    def page(self, told: Mapping[str, Any], place: Any = None) -> dict[str, Any]:
        """Return a page with the cursor of the next one, where there is one, and with what was made of its limit."""
        shown = dict(told)
        if place is not None:
            shown["next_cursor"] = urlsafe_b64encode(msgspec.json.encode([self._bound, place])).decode()
        if self._is_clamped:
            shown["warnings"] = [{"code": "limit_clamped", "limit": self.limit}]
        return shown

    def cut(self, told: Mapping[str, Any], member: str) -> dict[str, Any]:
        """Return one page of a list that comes whole."""
        rows, begin = told[member], max(self.behind(int) or 0, 0)
        end = begin + self.limit
        return self.page({**told, member: rows[begin:end]}, end if end < len(rows) else None)
