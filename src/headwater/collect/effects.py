"""What a line asks of the host. Writes go to the store in the order they came; the rest is acted on at once.

Writes cross to the store's process as MessagePack arrays, so each kind has a number.
"""

from typing import NamedTuple

from msgspec import Struct

from headwater.wire.compatibility import GapsPage
from headwater.wire.messages import Done, Interaction


class Keep(Struct, frozen=True, gc=False, array_like=True, tag=0):
    """Store a record, or its deletion. One is made for each record, so it is the cheapest of values.

    `data` is the JSON text as it came, None for a delete. `time` is the consent time in microseconds since
    1970, where the stream declares one. `blob` is the SHA-256 (hex) of the bytes that the record refers to.
    """

    stream: str
    key: str
    emitted_at: str
    time: int | None
    data: str | None
    blob: str | None


class Receipt(Struct, frozen=True, array_like=True, tag=1):
    """Note a record that was refused. `line` holds its bytes, None where they were not asked for."""

    stream: str
    reason: str
    message: str
    key: str | None
    line: bytes | None


class Stage(Struct, frozen=True, array_like=True, tag=2):
    """Stage a cursor behind the records before it; nothing is committed yet (CP-412)."""

    stream: str
    cursor: str


class Gap(Struct, frozen=True, array_like=True, tag=3):
    """Note a detail that is known to be missing. `parent` is None where the gap names none of several.

    `locator` and `error` are the connector's objects as JSON text.
    """

    stream: str
    parent: str | None
    key: str | None
    reason: str
    retryable: bool
    locator: str | None
    error: str | None = None


class Tell(NamedTuple):
    """Show the owner a line of progress."""

    text: str
    stream: str | None
    reached: float | None
    total: float | None


class Reply(NamedTuple):
    """Answer a message of a compatibility that waits for it."""

    message: GapsPage


class Ask(NamedTuple):
    """Put a question to the owner; the connector waits."""

    question: Interaction


class Finish(NamedTuple):
    """DONE came: close the child's input and wait for its exit."""

    done: Done


class Abort(NamedTuple):
    """The connector broke the protocol: end its process."""

    rule: str
    message: str


Write = Keep | Receipt | Stage | Gap
Effect = Write | Tell | Reply | Ask | Finish | Abort

WRITES = (Keep, Receipt, Stage, Gap)
