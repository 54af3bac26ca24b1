"""Bytes to lines: a message ends at LF and at nothing else (CP-104)."""

from headwater import limits


class LineTooLong(Exception):
    """A line passes `limits.LINE_BYTES`; what of it came is forgotten."""


class Framer:
    """Finds the lines in a stream of chunks. A CR before the LF is dropped; a blank line comes out as no bytes."""

    def __init__(self, max_bytes: int = limits.LINE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk and return the lines that it completes.

        Raise `LineTooLong` where a line passes the bound, whether or not it has ended yet.
        """
        head, found, rest = chunk.partition(b"\n")
        if not found:
            self._hold(chunk)
            return []
        self._hold(head)
        lines = [b"".join(self._parts), *rest.split(b"\n")]
        self._parts = [lines.pop()]
        self._held = len(self._parts[0])
        if max(self._held, *map(len, lines)) > self.max_bytes:
            raise LineTooLong
        return [line[:-1] if line[-1:] == b"\r" else line for line in lines]

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > self.max_bytes:
            self._parts = []
            raise LineTooLong
        self._parts.append(part)

    @property
    def unfinished(self) -> bool:
        """Whether bytes came after the last LF: a truncated line, which is never a message (CP-105)."""
        return self._held > 0
