"""Reading an installed release: each file is held to the index, and the index to what the release is known by."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from headwater import limits
from headwater.errors import HeadwaterError, is_exhausted, refuse
from headwater.manifest.document import is_digest
from headwater.operate.release_index import Index, read_release
from headwater.owned import folder, plain_at

UNHARMED: Final = "Nothing was sent or written."


class Installed:
    """One release that is there."""

    def __init__(self, index: Index, within: int) -> None:
        self.index = index
        self._files = {file.path: file for file in index.files}
        self._within = within

    def read(self, path: str) -> bytes:
        """Return a file's bytes. Raise KeyError where the release has none of that path, or `digest_mismatch`."""
        file, place = self._files[path], PurePosixPath("files", path)
        content = _bytes_at(self._within, place, file.size, path)
        if len(content) != file.size or sha256(content).hexdigest() != file.sha256:
            raise _changed(path)
        return content


@contextmanager
def installed(home: Path, digest: str) -> Iterator[Installed]:
    """Open the release that is known by a digest, in the folder of the installed ones.

    Raise FileNotFoundError where it is not there, another OSError where others can change that folder,
    `digest_mismatch` where an index is not the one, and what `read_release` has for one that this build cannot read.
    """
    with ExitStack() as stack:
        above = stack.enter_context(folder(home.parent.resolve() / home.name))
        try:
            within = stack.enter_context(folder(Path(digest), above))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _unless_exhausted(error, digest) from error
        document = _bytes_at(within, PurePosixPath("index.json"), limits.RELEASE_INDEX_BYTES, "index.json")
        if sha256(document).hexdigest() != digest:
            raise _changed("index.json")
        yield Installed(read_release(document, None, UNHARMED).index, within)


def digests(home: Path) -> list[str]:
    """Return what the installed releases are known by; nothing is read of them. Raise `description_unavailable`."""
    try:
        return sorted(path.name for path in home.iterdir() if is_digest(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise refuse("description_unavailable", "The folder of the installed releases cannot be read.") from error


def _bytes_at(within: int, place: PurePosixPath, at_most: int, shown: str) -> bytes:
    try:
        with folder(Path(place.parent), within) as inner:
            return plain_at(inner, place.name, at_most)
    except OSError as error:
        raise _unless_exhausted(error, shown) from error


def _unless_exhausted(error: OSError, file: str) -> Exception:
    """Return why a file is not the one of the release; that the machine ran out of something is no sign of that."""
    return error if is_exhausted(error) else _changed(file)


def _changed(file: str) -> HeadwaterError:
    message = "What is kept of the release that the instance names was changed, or is not there any more."
    shown = file.encode(errors="replace").decode()
    command = "headwater definitions list"
    return refuse("digest_mismatch", message, safe=UNHARMED, command=command, file=shown)
