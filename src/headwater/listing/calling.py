"""Calling one list hook of an integration in this process: what it is told, what it may send, what it may give back."""

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, Never

from headwater import clock, limits
from headwater.adapters.sending import Send, sent
from headwater.sdk import Fail, Incomplete
from headwater.sdk.context import Context, Provider
from headwater.sdk.http import Http
from headwater.sdk.integration import Envelope, Integration, Page
from headwater.sdk.logging import Log
from headwater.sdk.refusals import Refused
from headwater.wire.messages import RecoveryAction

# What ends the whole run: the account, or the provider, is not there for any list.
_ENDING: Final[Mapping[str, tuple[str, bool, RecoveryAction]]] = {
    "credential_invalid": ("The service refused the credential.", False, "refresh_credentials"),
    "insufficient_scope": ("The service does not allow this to the credential.", False, "upstream_unblock"),
    "provider_rate_limited": ("The service wants to be left alone for a while.", True, "retry_by_runtime"),
    "provider_unavailable": ("The service cannot be reached.", True, "retry_by_runtime"),
    "provider_timeout": ("The service did not answer in time.", True, "retry_by_runtime"),
}


class Late(BaseException):
    """A hook is past its deadline. No code that catches errors catches it."""


class Line:
    """Sends what hooks ask for, one request at a time, from a loop of its own: a hook may be in one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def exchange(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a request, and return what came of it."""
        return asyncio.run_coroutine_threadsafe(sent(self._send, asked), self._loop).result()


class Calls:
    """Calls the list hooks for one account. `credential` is None where none was needed."""

    def __init__(self, hooks: Integration, line: Line, provider: Provider, credential: Envelope | None) -> None:
        self._hooks, self._line, self._provider, self._credential = hooks, line, provider, credential
        self._log = Log([] if credential is None else [credential.access_token])

    def page(self, hook: str, cursor: str | None) -> Page:
        """Return one page. Raise `Fail` where the account or the provider is not there, `Incomplete` for a bad page."""
        try:
            with _deadline(limits.HOOK_SECONDS):
                page = getattr(self._hooks, hook)(self._context(), cursor)
                if inspect.iscoroutine(page):
                    page = asyncio.run(page)
        except Refused as refused:
            _end(refused.code)
        except Late:
            _end("provider_timeout")
        except Exception as error:  # noqa: BLE001 - the boundary of foreign code: its errors may hold anything
            self._log.write(f"{type(error).__name__} in {hook}: {error}")
            _end("provider_protocol_error")
        if not _is_page(page):
            raise Incomplete(f"{hook} gave something that is no page (provider_protocol_error).")
        return page  # type: ignore[no-any-return]

    def _context(self) -> Context:
        person = str(os.getuid())
        return Context(
            owner=person,
            acting_user=person,
            team=person,
            provider=self._provider,
            credential=self._credential,
            deadline=clock.now() + timedelta(seconds=limits.HOOK_SECONDS),
            throttle=_bounded(),
            clock=clock.now,
            http=Http(_counted(self._line.exchange)),
            log=self._log,
        )


def _counted(exchange: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], Any]:
    count = _bounded()

    def counted(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        count()
        return exchange(asked)

    return counted


def _bounded() -> Callable[[], None]:
    """Return what counts, and raises `Refused` where one call of a hook asks for too much."""
    left = iter(range(limits.HOOK_REQUESTS))

    def count() -> None:
        if next(left, None) is None:
            raise Refused("provider_protocol_error")

    return count


def _end(code: str) -> Never:
    if code in _ENDING:
        message, retryable, hint = _ENDING[code]
        raise Fail(message, retryable=retryable, code=code, hint=hint)
    raise Incomplete("The service answered something that was not expected (provider_protocol_error).")


def _is_page(page: object) -> bool:
    if not isinstance(page, Page) or not isinstance(page.items, list | tuple) or type(page.complete) is not bool:
        return False
    length = len(page.next) if isinstance(page.next, str) else 0
    known = page.next is None or 0 < length <= limits.LIST_CURSOR_CHARACTERS
    return known and len(page.items) <= limits.LIST_PAGE_ITEMS


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise `Late` in this thread when the time is over."""

    def late(_signal: int, _frame: object) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
