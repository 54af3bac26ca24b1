"""Blobs: the bytes that records refer to, in files named by their SHA-256."""

import contextlib
import hashlib
import os
from pathlib import Path

from headwater import limits

_CHUNK_BYTES = 1 << 20


class BlobFolder:
    """The folder of all blobs, and a run's spool from which they are adopted."""

    def __init__(self, folder: Path, spool: Path | None = None) -> None:
        self._folder = folder
        self._spool = spool

    def path(self, digest: str) -> Path:
        """Return where a blob lies."""
        return self._folder / digest[:2] / digest

    def adopt(self, digest: str) -> int | None:
        """Make a blob of the spool durable under its digest; return its size in bytes.

        Return None where it lies neither in the spool nor in the folder, is too large, or is not what its
        name says: the record that refers to it is then refused.
        """
        final = self.path(digest)
        spooled = self._spool / digest if self._spool is not None else None
        if final.exists():
            if spooled is not None:
                spooled.unlink(missing_ok=True)
            return final.stat().st_size
        if spooled is None or spooled.is_symlink() or not spooled.is_file():
            return None
        if spooled.stat().st_size > limits.BLOB_BYTES or not _settle(spooled, digest):
            return None
        final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        size = spooled.stat().st_size
        spooled.replace(final)
        _sync_folder(final.parent)
        return size

    def discard_spool(self) -> None:
        """Remove a run's spool and whatever was left in it."""
        if self._spool is None or not self._spool.is_dir():
            return
        for file in self._spool.iterdir():
            with contextlib.suppress(OSError):
                file.unlink()
        with contextlib.suppress(OSError):
            self._spool.rmdir()


def _settle(path: Path, digest: str) -> bool:
    """Check a file against its digest and bring it to the disk."""
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            seen.update(chunk)
        os.fchmod(file.fileno(), 0o600)
        os.fsync(file.fileno())
    return seen.hexdigest() == digest


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
