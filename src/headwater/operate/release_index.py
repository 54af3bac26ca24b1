"""The index of a release of definitions, and every reason not to take it.

A release is files that say what providers can be asked. Its *index* names each of them by size and SHA-256, and the
*asset*, the archive that holds them.

    {"schema": "urn:beyond10x:connectors-definitions-index:1", "tag": "0.3.0", "commit": "<hex>",
     "asset": {"name": "definitions-0.3.0.tar.gz", "sha256": "<hex>"},
     "files": [{"path": "github/api.toml", "size": 1207, "sha256": "<hex>"}, ...],
     "features": ["embedded_text", ...]}

Of this build the checks know two things only: the formats and the features that it reads (CLI-518).
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final

import msgspec

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.document import is_digest, parse

SCHEMA: Final = "urn:beyond10x:connectors-definitions-index:1"
UNCHANGED: Final = "Nothing was installed."
FEATURES: Final = frozenset({"embedded_text", "query_fixed", "query_folds", "rate_limit_headers"})

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FEATURE: Final = re.compile(rf"[a-z0-9_]{{1,{limits.RELEASE_FEATURE_BYTES}}}")


class Asset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The archive of a release: its name beside the index, and its SHA-256 in hexadecimal."""

    name: str
    sha256: str


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a release. `path` is relative, with `/`; `size` is in bytes."""

    path: str
    size: int
    sha256: str


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an index says. Its files stand in the order of their paths' bytes."""

    schema: str
    tag: str
    commit: str
    asset: Asset
    files: tuple[File, ...]
    features: tuple[str, ...]


class Release(msgspec.Struct, frozen=True):
    """A release: its index, and the bytes that this was read from."""

    index: Index
    document: bytes

    @property
    def digest(self) -> str:
        """The SHA-256 of the index's bytes, in hexadecimal: what the release is known by."""
        return sha256(self.document).hexdigest()


def read_release(document: bytes, tag: str | None, safe: str = UNCHANGED) -> Release:
    """Read the index of the release with a tag; None for one that is known by its digest.

    Raise `unknown_format_version` for another format, else `release_invalid` for what is not that format, else
    `unmet_feature` with the first feature that this build does not have (CLI-508 to CLI-512, CLI-517). `safe` is what
    is unharmed then.
    """
    root, faults = parse(document)
    if faults:
        raise invalid("its index is no JSON object in which each member stands once", safe)
    if root.get("schema") != SCHEMA:
        message = "This Headwater does not read the format of the release."
        raise refuse("unknown_format_version", message, safe=safe)
    try:
        index = msgspec.convert(root, Index)
    except msgspec.ValidationError:
        raise invalid("its index lacks a member, or has one too many or of another type", safe) from None
    if why := _fault(index, tag):
        raise invalid(why, safe)
    for feature in index.features:
        if feature not in FEATURES:
            raise refuse("unmet_feature", safe=safe, feature=feature)
    return Release(index, document)


def invalid(why: str, safe: str = UNCHANGED) -> HeadwaterError:
    """Return the refusal of a release that is not what its format says."""
    return refuse("release_invalid", f"The release is not what its format says: {why}.", safe=safe)


def mismatch(file: str) -> HeadwaterError:
    """Return the refusal of a file that is not the one that the index names."""
    return refuse("digest_mismatch", safe=UNCHANGED, file=file)


def _fault(index: Index, tag: str | None) -> str:
    """Return what in an index is not its format, nothing where all is (CLI-509, CLI-511)."""
    digests = [index.asset.sha256, *(file.sha256 for file in index.files)]
    if tag is not None and index.tag != tag:
        return "its index is of another tag"
    if not _COMMIT.fullmatch(index.commit):
        return "its commit is not 40 or 64 hexadecimal digits"
    if not all(map(is_digest, digests)):
        return "a digest of its index is not 64 hexadecimal digits"
    if not _is_segment(index.asset.name):
        return "the name of its asset is not one part of a path"
    if not all(map(_FEATURE.fullmatch, index.features)) or not _rises(index.features):
        return "its features are not sorted names, each once"
    return _fault_of_files(index.files)


def _fault_of_files(files: Sequence[File]) -> str:
    paths = [file.path for file in files]
    if len(files) > limits.RELEASE_FILES:
        return "it has more than 16,384 files"
    if any(file.size < 0 for file in files) or sum(file.size for file in files) > limits.RELEASE_BYTES:
        return "its files have more than 512 MiB, or fewer than no bytes"
    if not all(_is_segment(segment) for path in paths for segment in path.split("/")):
        return "a path of its index is not relative and plain"
    return _fault_between(paths)


def _fault_between(paths: Sequence[str]) -> str:
    """Return why paths, each of which can be one, cannot stand beside each other."""
    if not _rises(paths):
        return "the paths of its index are not sorted, each once"
    if len({path.casefold() for path in paths}) < len(paths):
        return "two paths of its index differ in case only"
    # With the lowest byte for `/`, what lies in a folder follows it at once.
    places = sorted(path.replace("/", "\0") for path in paths)
    if any(below.startswith(f"{place}\0") for place, below in pairwise(places)):
        return "a path of its index is the folder of another"
    return ""


def _is_segment(text: str) -> bool:
    """Whether text can be one step of a path, on every file system (CLI-510)."""
    is_plain = text not in ("", ".", "..") and not set(text) & set("/\\\0")
    return is_plain and len(text.encode()) <= limits.RELEASE_SEGMENT_BYTES


def _rises(names: Sequence[str]) -> bool:
    """Whether each name comes after the one before it, by its bytes: code points have the same order in UTF-8."""
    return all(before < after for before, after in pairwise(names))
