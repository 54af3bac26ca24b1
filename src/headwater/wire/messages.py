"""The messages of the Collection Profile, with the specification's own names.

Members that are absent are `UNSET`; a `null` is never an absent member. Members that the profile does not
name are ignored, because connectors in use send some, and none of them may change an outcome (CP-465).
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from headwater.limits import INTERACTION_MAX_SECONDS, INTERACTION_SECONDS, MAX_SAFE_INTEGER

Name = Annotated[str, Meta(min_length=1)]
Number = int | float
Key = str | list[str]
DetailKey = str | int | float

RecoveryAction = Literal[
    "retry_by_runtime",
    "retry_on_connector_upgrade",
    "refresh_credentials",
    "manual_action_required",
    "update_selector",
    "upstream_unblock",
    "not_retriable",
    "unknown",
]


class RecoveryDetail(Struct, frozen=True, forbid_unknown_fields=True):
    """The object form of a recovery hint; `action` is mandatory (CP-824)."""

    action: RecoveryAction
    retryable: bool | UnsetType = UNSET


RecoveryHint = RecoveryAction | RecoveryDetail


class Record(Struct, frozen=True, gc=False, tag="RECORD"):
    """One data record. `data` is kept as the bytes that came; `op` directs the store and is not stored."""

    stream: Name
    key: Key
    data: Raw
    emitted_at: str
    op: Literal["upsert", "delete"] = "upsert"


class State(Struct, frozen=True, tag="STATE"):
    """A checkpoint. `cursor` is opaque and returns on the next run byte for byte (CP-407)."""

    stream: Name
    cursor: Raw


class Interaction(Struct, frozen=True, tag="INTERACTION"):
    """A question to the owner; the connector writes nothing until it is answered (CP-701)."""

    request_id: str
    kind: Literal["credentials", "otp", "manual_action"]
    message: str
    schema: dict[str, Any] | UnsetType = UNSET
    timeout_seconds: Number | UnsetType = UNSET


class Continuation(Struct, frozen=True):
    """A bounded page that is proven, whose next page the runtime owns (CP-133)."""

    boundary: str
    slice_start: Any
    slice_end: Any
    considered: int
    covered: int
    remaining: bool
    owner: Literal["runtime"]

    def __post_init__(self) -> None:
        """Refuse a continuation that does not continue."""
        if not self.remaining:
            raise ValueError("a continuation has remaining: true")


class SkipResult(Struct, frozen=True, tag="SKIP_RESULT"):
    """A stream or resource that was skipped on purpose."""

    stream: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    recovery_hint: RecoveryHint | UnsetType = UNSET
    continuation: Continuation | UnsetType = UNSET


class DetailCoverage(Struct, frozen=True, tag="DETAIL_COVERAGE"):
    """How completely one checkpoint parent's details were fetched.

    `optional_skip_keys` is no part of the portable profile: it counts where both sides opted in, and nowhere else.
    """

    reference_only: bool
    stream: Name
    state_stream: Name
    required_keys: list[DetailKey]
    hydrated_keys: list[DetailKey]
    gap_keys: list[DetailKey] = []
    optional_skip_keys: Any = UNSET


class DetailGap(Struct, frozen=True, tag="DETAIL_GAP"):
    """A record detail that is known to be missing and can be fetched later."""

    stream: Name
    parent_stream: str | UnsetType = UNSET
    record_key: DetailKey | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    retryable: bool | UnsetType = UNSET
    detail_locator: dict[str, Any] | UnsetType = UNSET
    list_cursor: dict[str, Any] | UnsetType = UNSET
    last_error: dict[str, Any] | UnsetType = UNSET
    gap_id: str | UnsetType = UNSET
    lease_id: str | UnsetType = UNSET


class Outcomes(Struct, frozen=True):
    """What became of each key that was considered."""

    emitted: Number
    unchanged: Number
    gapped: Number
    unaccounted: Number


class StreamEvidence(Struct, frozen=True, tag="STREAM_EVIDENCE"):
    """A state_stream child's own count of what it enumerated; it gates nothing (CP-627)."""

    reference_only: bool
    stream: Name
    considered: Number
    outcomes: Outcomes


class Progress(Struct, frozen=True, tag="PROGRESS"):
    """A line for people; it changes nothing."""

    message: str
    stream: str | UnsetType = UNSET
    count: Number | UnsetType = UNSET
    total: Number | UnsetType = UNSET


class DoneError(Struct, frozen=True):
    """Why a run failed, in the connector's words; `code` is an identity, never an instruction (CP-821)."""

    message: str
    retryable: bool
    code: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}\Z")] | UnsetType = UNSET
    recovery_hint: RecoveryHint | UnsetType = UNSET


class Done(Struct, frozen=True, tag="DONE"):
    """The end, as the connector sees it; always its last message (CP-153)."""

    status: Literal["succeeded", "failed", "cancelled"]
    records_emitted: Number
    error: DoneError | UnsetType = UNSET


class TimeRange(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A window over the consent time field: `since` inclusive, `until` exclusive (CP-312)."""

    since: str | UnsetType = UNSET
    until: str | UnsetType = UNSET


class CollectionStream(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One stream to collect, and how it is narrowed. It has no members but these (CP-302)."""

    name: Name
    resources: list[str] | UnsetType = UNSET
    time_range: TimeRange | UnsetType = UNSET
    fields: list[str] | UnsetType = UNSET


class CollectionScope(Struct, frozen=True, forbid_unknown_fields=True):
    """What one run collects: a target, and no authority to read anything (CP-309)."""

    streams: list[CollectionStream]


CollectionMode = Literal["full_refresh", "incremental"]


class Start(Struct, frozen=True, tag="START"):
    """The first line a connector reads, and the only START of its run (CP-149)."""

    run_id: str
    collection_mode: CollectionMode
    scope: CollectionScope
    state: dict[str, Raw] | None
    bindings: dict[str, dict[str, Any]]


class InteractionResponse(Struct, frozen=True, tag="INTERACTION_RESPONSE", repr_omit_defaults=True):
    """The owner's answer; `data` is present only with success (CP-705)."""

    request_id: str
    status: Literal["success", "cancelled", "timeout"]
    data: dict[str, Any] | UnsetType = UNSET

    def __repr__(self) -> str:
        """Show everything but the answer, which may be a credential."""
        return f"InteractionResponse({self.request_id!r}, {self.status!r})"


ConnectorMessage = (
    Record | State | Interaction | SkipResult | DetailCoverage | DetailGap | StreamEvidence | Progress | Done
)
RuntimeMessage = Start | InteractionResponse


def seconds_to_answer(question: Interaction) -> float:
    """Return how long a question waits: as long as it asks for, within a bound, and never without end (CP-707)."""
    asked = question.timeout_seconds
    return INTERACTION_SECONDS if asked is UNSET else float(min(asked, INTERACTION_MAX_SECONDS))


def whole(value: Number) -> int | None:
    """Return a count as an int: by value, so 214.0 is 214; None where it is no safe non-negative integer."""
    if isinstance(value, bool) or not 0 <= value <= MAX_SAFE_INTEGER:
        return None
    return int(value) if value == int(value) else None
