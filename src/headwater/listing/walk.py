"""The walk through one list: page after page until it is complete, or until it is plain that it will not be."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from headwater import limits
from headwater.sdk import Incomplete, Misuse, StreamRun
from headwater.sdk.integration import Page
from headwater.wire.keys import canonical_key
from headwater.wire.messages import Key

Fetch = Callable[[str | None], Page]


class Walk:
    """One list in one run.

    The stream's cursor keeps where the provider said to go on after a complete list (`next`), and the keys of what was
    there (`known`). It is saved once, behind all that it covers (INT-335). What is known and was not met again is
    deleted, but only after a walk from the beginning that was complete and in which every item could be told (INT-336).
    """

    def __init__(self, stream: StreamRun, fetch: Fetch) -> None:
        self._stream, self._fetch = stream, fetch
        self._begin: str | None = stream.cursor.get("next")
        self._known: dict[str, Key] = {canonical_key(key): key for key in stream.cursor.get("known", ())}
        self._met: dict[str, Key] = {}
        self._aside = 0

    def through(self) -> None:
        """Walk to the end. Raise `Incomplete` on a cursor that stands twice, and on a page without news (INT-334)."""
        cursor, asked = self._begin, {self._begin}
        for _ in range(limits.LIST_PAGES):
            page = self._fetch(cursor)
            has_news = self._take(page)
            if page.complete:
                self._end(page.next)
                return
            if page.next is None:
                raise Incomplete("The list ended before it was complete (ended_early).")
            if page.next in asked:
                raise Incomplete("The list came back to a page that it had given (repeated_cursor).")
            if not has_news:
                raise Incomplete("The list gave a page without anything new (no_news).")
            asked.add(page.next)
            cursor = page.next
        raise Incomplete(f"The list has more than {limits.LIST_PAGES:,} pages (too_many_pages).")

    def _take(self, page: Page) -> bool:
        """Send what a page holds; return whether any of it was not met before."""
        before = len(self._met) + self._aside
        for item in page.items:
            key = self._key(item)
            if key is None or not self._sent(item, key):
                self._set_aside(item, key)
            if key is not None:
                self._met[canonical_key(key)] = key
        return len(self._met) + self._aside > before

    def _key(self, item: Any) -> Key | None:
        """Return the key of an item, None where it has none that could be written."""
        try:
            key = self._stream.key_of(item)
            canonical_key(key).encode()
        except (Misuse, TypeError, ValueError):
            return None
        return key

    def _sent(self, item: Mapping[str, Any], key: Key) -> bool:
        """Send an item, or return False where it holds what JSON cannot say."""
        try:
            self._stream.emit(item, key=key)
        except (Misuse, TypeError, ValueError, RecursionError):
            return False
        return True

    def _set_aside(self, item: Any, key: Key | None) -> None:
        """Send an item that is no record under a key that is none of its stream's: the host keeps it with a receipt."""
        self._aside += key is None
        number = f"item {len(self._met) + self._aside}"
        try:
            text = json.dumps(item, default=str)
        except (ValueError, RecursionError):
            text = ""
        self._stream.emit({"item": text[: limits.LIST_ASIDE_CHARACTERS]}, key=number)

    def _end(self, next_cursor: str | None) -> None:
        """Delete what is gone, and save how far the list is."""
        if self._begin is None and not self._aside:
            for name in self._known.keys() - self._met.keys():
                self._delete(self._known[name])
            self._known = {}
        known = {**self._known, **self._met}
        cursor: dict[str, Any] = {} if next_cursor is None else {"next": next_cursor}
        if sum(map(len, known)) <= limits.LIST_KNOWN_CHARACTERS:
            cursor["known"] = list(known.values())
        else:
            self._stream.progress("The list is so long that what vanishes from it will not be noticed.")
        self._stream.save(cursor)

    def _delete(self, key: Key) -> None:
        parts = [key] if isinstance(key, str) else key
        fields = self._stream.run.declaration.streams[self._stream.name].primary_key
        self._stream.delete(dict(zip(fields, parts, strict=True)), key=key)
