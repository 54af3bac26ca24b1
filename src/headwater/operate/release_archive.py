"""The asset of a release, held to its index: the files that are named, those only, and each to the byte."""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from headwater import limits
from headwater.operate.release_index import File, Index, invalid, mismatch
from headwater.operate.release_tar import Entry, Inflating, entries

Unpacked = Iterable[tuple[File, Iterable[bytes]]]


def check_asset(asset: bytes, index: Index) -> None:
    """Raise `digest_mismatch` with the file that is not the one named, or `release_invalid` (CLI-513 to CLI-516)."""
    if sha256(asset).hexdigest() != index.asset.sha256:
        raise mismatch(index.asset.name)
    for _, pieces in unpacked(asset, index):
        for _ in pieces:
            pass


def unpacked(asset: bytes, index: Index) -> Unpacked:
    """Yield the files of an asset, each with its bytes in pieces, which have to be taken before the next file.

    Raise as `check_asset` does, as soon as something shows that is not what the index says.
    """
    archive = Inflating(asset, _room(index))
    missing = {file.path: file for file in index.files}
    top = ""
    for entry in entries(archive):
        first, path = _divided(entry)
        top = top or first
        if first != top:
            raise invalid("its asset has more than one folder at its top")
        if entry.is_folder:
            continue
        file = missing.pop(path, None)
        if file is None:
            raise invalid("its asset has a file that the index does not name, or one twice")
        if entry.size != file.size:
            raise mismatch(file.path)
        yield file, _bytes_of(file, archive)
    if missing:
        raise invalid("its asset lacks a file that the index names")


def _room(index: Index) -> int:
    """Return how much an asset may inflate to: its files in blocks of 512 bytes, and room for headers (CLI-516)."""
    files = sum(file.size + -file.size % 512 for file in index.files)
    return files + len(index.files) * limits.RELEASE_FILE_ROOM_BYTES + limits.RELEASE_ROOM_BYTES


def _divided(entry: Entry) -> tuple[str, str]:
    """Return the folder at the top that an entry lies under, and its path below that; for a file beside it, no path."""
    name = entry.name.removesuffix("/") if entry.is_folder else entry.name
    first, _, path = name.partition("/")
    if set(name.split("/")) & {"", ".", ".."}:
        raise invalid("an entry of its asset does not lie under one folder at the top")
    return first, path


def _bytes_of(file: File, archive: Inflating) -> Iterator[bytes]:
    digest = sha256()
    left = file.size
    while left and (piece := archive.take(min(left, limits.RELEASE_PIECE_BYTES))):
        digest.update(piece)
        left -= len(piece)
        yield piece
    if left:
        raise invalid("its asset is cut off")
    if digest.hexdigest() != file.sha256:
        raise mismatch(file.path)
