"""Handing bytes to the host: a file in the run's spool, named by its digest; the record carries a blob_ref."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headwater.sdk.outcome import Misuse

_MIME_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:;.*)?", re.ASCII)


class Spool:
    """The folder that the host gave this run for its blobs."""

    def __init__(self, folder: str | None) -> None:
        self._folder = Path(folder) if folder else None

    def put(self, content: bytes | Path | Iterable[bytes], mime_type: str) -> dict[str, Any]:
        """Store bytes, a file or chunks, and return the `blob_ref` that a record carries (CORE-026)."""
        if self._folder is None:
            raise Misuse("the host gave this run no place for blobs")
        if not _MIME_TYPE.fullmatch(mime_type):
            raise Misuse("a mime_type has the form type/subtype, such as image/jpeg")
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".part-")
        digest, size = hashlib.sha256(), 0
        with os.fdopen(descriptor, "wb") as file:
            for chunk in _chunks(content):
                digest.update(chunk)
                size += len(chunk)
                file.write(chunk)
        shutil.move(name, self._folder / digest.hexdigest())
        return {
            "blob_id": f"blob_sha256_{digest.hexdigest()}",
            "mime_type": mime_type,
            "size_bytes": size,
            "sha256": digest.hexdigest(),
        }


def _chunks(content: bytes | Path | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        with content.open("rb") as file:
            while chunk := file.read(1 << 20):
                yield chunk
    else:
        yield from content
