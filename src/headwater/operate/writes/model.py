"""The nouns of a write as frozen values. Times are milliseconds since 1970 in UTC; digests are SHA-256 in lower hex."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from headwater.errors import HeadwaterError

Classification = Literal["not_attempted", "refused", "applied", "unknown"]
"""What is known of a write's effect (DESIGN, invariant 7). Unknown is never tried again."""

AttemptState = Literal["prepared", "dispatching", "aborted", "completed", "failed", "indeterminate"]
CauseStage = Literal["preflight", "attempt_store", "approval", "dispatch", "response", "observation", "audit"]
KeyState = Literal["candidate", "active", "retired", "retiring", "deleted"]
MODE: Final = "required"


class Cause(Struct, frozen=True):
    """What made the outcome of a write what it is: a code of failures, and where it came about."""

    code: str
    stage: CauseStage


class SigningKey(Struct, frozen=True):
    """A key that signs approvals. `public` is 32 bytes in base64url; the private half is at `version` in custody."""

    key_id: str
    public: str
    state: KeyState
    version: str | None = None


class Issuer(Struct, frozen=True):
    """Who signs the approvals of one owner, with every key that it had. `revision` moves with every change."""

    issuer_id: str
    revision: int = 0
    keys: tuple[SigningKey, ...] = ()

    @property
    def name(self) -> str:
        """What a proof calls it."""
        return f"connectors.local-issuer/{self.issuer_id}"

    @property
    def audience(self) -> str:
        """Whom a proof is for."""
        return f"connectors.approval/{self.issuer_id}"

    @property
    def active(self) -> SigningKey | None:
        """The key that signs now, and whose proofs alone count."""
        return next((key for key in self.keys if key.state == "active"), None)

    def key(self, key_id: str) -> SigningKey | None:
        """Return a key by its id."""
        return next((key for key in self.keys if key.key_id == key_id), None)


class Selected(Struct, frozen=True):
    """What an instance is at one time: a policy is for this, and has to be published again for anything else."""

    configuration_revision: str
    descriptor_revision: str
    executable_selection: str | None
    clock_configuration_sha256: str


class Policy(Struct, frozen=True):
    """Which writes of an instance may be approved: none that is not named."""

    policy_id: str
    instance_id: str
    issuer_id: str
    revision: int
    owner_uid: int
    selection: Selected
    operations: tuple[str, ...]

    @property
    def authority(self) -> str:
        """What a subject calls it."""
        return f"connectors.local-policy/{self.policy_id}/{self.revision}"


class Preparation(Struct, frozen=True):
    """One write, made ready to be approved: the subject and its digest, and who would sign it."""

    subject: Mapping[str, Any]
    sha256: str
    issuer: Issuer
    policy: Policy


class Proof(Struct, frozen=True, forbid_unknown_fields=True):
    """An approval. `evidence` is a compact JWS (RFC 7515) signed with Ed25519 (RFC 8037)."""

    reference: str
    evidence: str

    def __repr__(self) -> str:
        return "Proof(…)"


class Interval(Struct, frozen=True):
    """Between which times it is now, as far as the clock can tell."""

    lower_ms: int
    upper_ms: int


class Told(Struct, frozen=True, omit_defaults=True):
    """A failure as it is kept with its attempt, to be told again. Without a stage it is the host's own (CLI-723)."""

    code: str
    message: str = ""
    stage: str | None = None
    next_action: str | None = None
    service_code: str | None = None


class Admitted(Struct, frozen=True):
    """What a write was admitted by, as numbers that move with every change of it: compared as it is sent."""

    generation: int
    issuer_revision: int
    policy_revision: int


class Attempt(Struct, frozen=True):
    """One write that was begun. `fingerprint` digests what was asked; `key` the key that makes it the same one.

    `result` is kept as JSON as long as it can be told again; `request_id` is that of the journal.
    """

    attempt_id: str
    owner: int
    instance_id: str
    connection: str
    operation: str
    fingerprint: str
    issuer: str
    reference: str
    request_id: str
    state: AttemptState = "prepared"
    key: str | None = None
    classification: Classification = "not_attempted"
    cause: Cause | None = None
    failure: Told | None = None
    result: bytes | None = None


class Outcome(Struct, frozen=True):
    """What came of a write that was sent, or was about to be: its result where it was applied and could be read."""

    classification: Classification
    result: Any = None
    failure: HeadwaterError | None = None
    cause: Cause | None = None


class Mutation(Struct, frozen=True):
    """What a result or a failure tells of its write (MutationObservation)."""

    classification: Classification
    attempt: Attempt | None = None
    replayed: bool = False
    cause: Cause | None = None

    def shown(self) -> dict[str, Any]:
        """Return it as it is shown."""
        told: dict[str, Any] = {"classification": self.classification, "replayed": self.replayed}
        if self.attempt is not None:
            told["attempt"] = {"instance": self.attempt.instance_id, "id": self.attempt.attempt_id}
            if self.replayed:
                told["original_request_id"] = self.attempt.request_id
        if self.cause is not None:
            told["cause"] = {"code": self.cause.code, "stage": self.cause.stage}
        return told
