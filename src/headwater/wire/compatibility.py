"""Ways of speaking that are not the profile's own. A connector has one only where its connector.toml names it.

`pdpp-reference/1` is what the connectors of the public reference implementation speak. Beside the profile's messages
they may send five of their own; without the name each of them is an unknown type and ends the run:

ASSISTANCE                 shown to the owner as progress; nothing waits for it
ASSISTANCE_STATUS          counted
DETAIL_GAP_ATTEMPTED       counted; Headwater counts its tries by its runs
DETAIL_GAP_RECOVERED       counted; a gap heals when its record comes, and by no word alone
DETAIL_GAPS_PAGE_REQUEST   answered with an empty page: the gaps of a run stand in its START

They also send a STATE for a stream that declares a `state_stream`. Its cursor is not kept, because only the parent's
covers it: the next run reads that stream from its beginning, and finds most of it unchanged.

Each is counted, and `runs explain` shows the counts. Their START has one member more, `detail_gaps`.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from headwater.wire.decode import NotAMessage
from headwater.wire.messages import Name, Start

PDPP_REFERENCE = "pdpp-reference/1"
CHILD_STATE = "STATE of a state_stream child"


class Assistance(Struct, frozen=True, tag="ASSISTANCE"):
    """The owner may have to do something; the connector goes on meanwhile."""

    message: str


class AssistanceStatus(Struct, frozen=True, tag="ASSISTANCE_STATUS"):
    """What became of such a request."""

    assistance_request_id: str
    status: str


class GapAttempted(Struct, frozen=True, tag="DETAIL_GAP_ATTEMPTED"):
    """A gap that START handed out is being tried."""

    stream: Name
    gap_id: str


class GapRecovered(Struct, frozen=True, tag="DETAIL_GAP_RECOVERED"):
    """A gap that START handed out was filled."""

    stream: Name
    gap_id: str


class GapsPageRequest(Struct, frozen=True, tag="DETAIL_GAPS_PAGE_REQUEST"):
    """The connector has worked off its gaps, and asks for more."""

    request_id: str
    reference_only: Literal[True]


class PendingGap(Struct, frozen=True):
    """A gap, as START hands it out. `record_key` is the canonical key."""

    gap_id: str
    stream: Name
    record_key: str
    status: Literal["pending"] = "pending"
    reference_only: bool = True


class GapsPage(Struct, frozen=True, tag="DETAIL_GAPS_PAGE_RESPONSE"):
    """The answer to a request for more gaps."""

    request_id: str
    detail_gaps: list[PendingGap]
    reference_only: bool = True


class ReferenceStart(Start, frozen=True, tag="START"):
    """START, with the gaps that the run is to try."""

    detail_gaps: list[PendingGap] = msgspec.field(default_factory=list)


class Extension(NamedTuple):
    """A message of a compatibility: its type, what the owner is shown, and the answer that it waits for."""

    kind: str
    shown: str | None = None
    answer: GapsPage | None = None


_KINDS = Assistance | AssistanceStatus | GapAttempted | GapRecovered | GapsPageRequest
_decode = msgspec.json.Decoder(_KINDS).decode
_TAGS = frozenset(kind.__struct_config__.tag for kind in _KINDS.__args__)


def start(compatibility: str, plain: Start, gaps: Iterable[tuple[str, str, str]]) -> Start:
    """Return the START of a compatibility, over the profile's own and gaps as (id, stream, canonical key)."""
    if compatibility != PDPP_REFERENCE:
        return plain
    return ReferenceStart(**msgspec.structs.asdict(plain), detail_gaps=[PendingGap(*gap) for gap in gaps])


def read_extension(compatibility: str, line: bytes) -> Extension | None:
    """Read a line whose type is not one of the profile's.

    Return None where the compatibility does not have the type either; raise `NotAMessage` where the line has not its
    shape.
    """
    kind = _kind(line)
    if compatibility != PDPP_REFERENCE or kind not in _TAGS:
        return None
    try:
        message = _decode(line)
    except msgspec.DecodeError as error:
        raise NotAMessage("invalid_message", f"A {kind} does not have the shape of its type.") from error
    shown = message.message if isinstance(message, Assistance) else None
    answer = GapsPage(message.request_id, []) if isinstance(message, GapsPageRequest) else None
    return Extension(kind, shown, answer)


class _Typed(Struct):
    type: str


def _kind(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=_Typed).type
    except (msgspec.DecodeError, RecursionError):
        return ""
