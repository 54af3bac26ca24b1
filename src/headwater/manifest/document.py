"""From bytes to one JSON object: strict UTF-8, bounded in size and depth, no member twice. And what identifies one."""

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import msgspec

from headwater import limits
from headwater.manifest.faults import Fault, escaped

_DIGEST_DIGITS: Final = 64
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


def parse(document: bytes) -> tuple[dict[str, Any], list[Fault]]:
    """Return the object that a document holds and no fault, or nothing and why it cannot be read."""
    if len(document) > limits.MANIFEST_BYTES:
        return {}, [Fault("", "size", f"is larger than {limits.MANIFEST_BYTES} bytes")]
    try:
        root = msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError):
        return {}, [Fault("", "json", "is not valid JSON")]
    if not isinstance(root, dict):
        return {}, [Fault("", "type", "must be an object")]
    if is_too_deep(root):
        return {}, [Fault("", "depth", f"is nested deeper than {limits.NESTING_LEVELS} levels")]
    if repeated := list(islice(_repeated(document), limits.FAULTS_PER_DOCUMENT)):
        return {}, [Fault(pointer, "repeated_member", "stands twice in its object") for pointer in repeated]
    return root, []


def digest(value: Any) -> str:
    """Return the SHA-256, in lower hex, of canonical JSON: keys sorted, no white space, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()


def is_digest(value: Any) -> bool:
    """Whether a value can be a SHA-256 as it is written everywhere: 64 hexadecimal digits, in lower case."""
    return isinstance(value, str) and len(value) == _DIGEST_DIGITS and _HEXADECIMAL.issuperset(value)


def children(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object or an array holds, each with its step of a JSON pointer."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield escaped(name), value
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield str(index), value


def is_too_deep(root: Any) -> bool:
    """Whether a document is nested deeper than a document may be."""
    level = [root]
    for _ in range(limits.NESTING_LEVELS):
        level = [value for node in level for _, value in children(node)]
        if not level:
            return False
    return True


def _repeated(document: bytes) -> Iterator[str]:
    """Yield the place of each member that stands twice in its object."""
    import jiter

    try:
        jiter.from_json(document, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError:
        yield from _places_of_repeated(document)


def _places_of_repeated(document: bytes) -> Iterator[str]:
    repeated: dict[int, set[str]] = {}
    held = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            held.append(members)  # an object that is dropped would give its identity to another
            seen: set[str] = set()
            repeated[id(members)] = {name for name, _ in pairs if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
        return members

    waiting = [("", json.loads(document, object_pairs_hook=note))]
    while waiting:
        pointer, node = waiting.pop()
        for name in sorted(repeated.get(id(node), ())):
            yield f"{pointer}/{escaped(name)}"
        waiting.extend((f"{pointer}/{step}", value) for step, value in children(node))
