"""Where the files of a release come from: a repository over HTTPS, or a folder."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

import httpx2

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.operate.release_index import UNCHANGED
from headwater.operate.release_names import unfit_source
from headwater.outbound.client import Answer, Bounds, Client, Reach, Unanswered

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = {"accept": "*/*"}


class ReleaseSource(Protocol):
    """Gives the files of one release. `name` is what the lock calls the source."""

    name: str

    def read(self, file: str, at_most: int) -> bytes:
        """Return a file of the release.

        Raise `not_found` where there is none, `unavailable` where it cannot be read or is larger (CLI-525, CLI-526).
        """
        ...


class ReleaseFolder:
    """A release in `<source>/<tag>/`."""

    def __init__(self, source: str, tag: str) -> None:
        try:
            self.name = os.path.realpath(source, strict=True)
            self.name.encode()
        except (FileNotFoundError, NotADirectoryError):
            raise _absent() from None
        except UnicodeEncodeError:
            raise refuse("invalid_input", "The path of a source has to be UTF-8.") from None
        except OSError as error:
            raise _unreadable() from error
        self._folder = Path(self.name) / tag

    def read(self, file: str, at_most: int) -> bytes:
        """See `ReleaseSource.read`."""
        try:
            descriptor = os.open(self._folder / file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as opened:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise _absent()
                content = opened.read(at_most + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise _absent() from None
        except OSError as error:
            raise _unreadable() from error
        if len(content) > at_most:
            raise _unreadable()
        return content


class ReleaseRepository:
    """A release in `<source>/releases/download/<tag>/`, as the large forges serve it.

    The host of the source may be a private one: the person named it. One that a redirect leads to may not. With
    `certificates` (PEM) these are trusted, and no others.
    """

    def __init__(self, source: str, tag: str, certificates: str | None = None) -> None:
        self.name = source
        self._url = f"{source}/releases/download/{tag}"
        try:
            self._host = httpx2.URL(source).host
        except httpx2.InvalidURL:
            raise unfit_source() from None
        self._certificates = certificates

    def read(self, file: str, at_most: int) -> bytes:
        """See `ReleaseSource.read`."""
        try:
            return asyncio.run(self._read(f"{self._url}/{quote(file)}", at_most)).body
        except (Unanswered, TimeoutError, httpx2.InvalidURL, ValueError) as error:
            raise _unreadable() from error

    async def _read(self, address: str, at_most: int) -> Answer:
        """Return an answer and not its bytes: `asyncio.run` writes out what it gets, and an answer is short then."""
        url = httpx2.URL(address)
        async with asyncio.timeout(limits.RELEASE_SECONDS):
            for _ in range(1 + limits.RELEASE_REDIRECTS):
                reach = Reach(private=url.host == self._host, certificates=self._certificates)
                client = Client(reach, Bounds(limits.RELEASE_SECONDS, at_most))
                answer = await client.get(str(url), _HEADERS)
                if answer.status == 404:
                    raise _absent()
                if answer.status == 200:
                    return answer
                if answer.status not in _REDIRECTS or answer.location is None:
                    raise _unreadable()
                url = url.join(answer.location)
                if url.scheme != "https" or url.userinfo:
                    raise _unreadable()
        raise _unreadable()


def _absent() -> HeadwaterError:
    message = "The source has no such release, or lacks a file of it."
    return refuse("not_found", message, stage="dispatch", next_action="none", safe=UNCHANGED)


def _unreadable() -> HeadwaterError:
    message = "The source gives no file of a release that can be taken."
    return refuse("unavailable", message, stage="dispatch", safe=UNCHANGED)
