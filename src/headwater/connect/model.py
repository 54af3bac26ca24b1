"""A connection, and the way one comes about: frozen values. Times are milliseconds since 1970 in UTC."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field

from headwater.manifest.auth import Method

Lifecycle = Literal["live", "stale", "revoked"]
"""What is stored. Stale: published, and its credential was refused since. Revoked is for good."""

Check = Literal["custody_reachable", "credential_present", "credential_valid", "identity_check", "scope_check"]
Found = Literal["ok", "missing", "invalid", "insufficient", "unavailable", "uncertain"]

ALL_OK: Final[Mapping[Check, Found]] = {
    "custody_reachable": "ok",
    "credential_present": "ok",
    "credential_valid": "ok",
    "identity_check": "ok",
    "scope_check": "ok",
}


class Identity(Struct, frozen=True):
    """Whose account it is. `kind` and `subject` are what a renewal has to meet again; `display` may change."""

    kind: str
    subject: str
    display: str = ""

    def is_same(self, other: "Identity") -> bool:
        """Whether both name one account."""
        return (self.kind, self.subject) == (other.kind, other.subject)


class Binding(Struct, frozen=True):
    """What a credential was admitted under: where it goes, how it authenticates, and by what configuration.

    `authority` is the provider, `authentication` digests the method without its evidence lifetime, `declaration` with
    it. `credential_revision` digests where the credential goes and how it authenticates, never what may be done with
    it (CLI-463); `executable` names what sends it.
    """

    authority: str
    authentication: str
    declaration: str
    configuration_revision: str
    credential_revision: str | None = None
    executable: str | None = None


class Evidence(Struct, frozen=True):
    """What the last check of a credential showed, and until when that counts."""

    collected_at_ms: int
    valid_until_ms: int
    scopes: tuple[str, ...] | None = None
    credential_expires_at_ms: int | None = None
    checks: Mapping[Check, Found] = field(default_factory=lambda: ALL_OK)


class Connection(Struct, frozen=True):
    """An account that is connected to an instance.

    `revision` is what people see of its changes; `fence` moves with every write, `generation` with every credential.
    `version` is the custody's reference of the credential, and is shown to nobody.
    """

    reference: str
    owner: int
    instance_id: str
    connector: str
    instance: str
    profile: str
    binding: Binding
    identity: Identity
    version: str
    evidence: Evidence
    revision: int = 1
    fence: int = 1
    generation: int = 1
    lifecycle: Lifecycle = "live"
    refused_configuration_revision: str | None = None


AcquisitionState = Literal["pending", "completing", "completed", "failed"]
AcquisitionFailure = Literal["rejected", "exchange_unknown", "expired"]


class Acquisition(Struct, frozen=True):
    """One attempt to get a credential: consumed durably before anything is exchanged, and never a second time.

    Who owns the connection, who acted and for which team are three facts (INT-472); here they are one person.
    `connection` is allocated with it; `generation` is that of the credential it renews, 0 for a new connection.
    """

    reference: str
    owner: int
    acting_user: int
    team: int
    instance_id: str
    connection: str
    configuration_revision: str
    generation: int
    expires_at_ms: int
    state: AcquisitionState = "pending"
    reason: AcquisitionFailure | None = None

    def is_open(self, now_ms: int) -> bool:
        """Whether it may still be completed: its deadline never moves."""
        return self.state in ("pending", "completing") and now_ms < self.expires_at_ms

    @property
    def renews(self) -> bool:
        """Whether it renews the credential of a connection that is there."""
        return self.generation > 0


class Target(Struct, frozen=True):
    """The instance that a command addresses, as it is configured now, with the methods it may be signed in by.

    `endpoint` is where a credential goes, `trust` which certificates are believed there. `lacks_endpoint` says that one
    is needed and not given, `is_placed` that the configuration's owner wrote it. `permitted` are the methods that the
    configuration allows, None for all. `refreshes` says that the integration's hooks renew credentials.
    `provider` is the host name by which the operator's settings for it are found.
    """

    owner: int
    connector: str
    instance: str
    alias: str
    instance_id: str
    configuration_revision: str
    authority: str
    endpoint: str = ""
    trust: str = ""
    methods: Sequence[Method] = ()
    profile: str | None = None
    executable: str | None = None
    enabled: bool = True
    lacks_endpoint: bool = False
    is_placed: bool = False
    permitted: Sequence[str] | None = None
    refreshes: bool = False
    provider: str = ""

    @property
    def name(self) -> str:
        """The instance, as `<connector>/<instance>`."""
        return f"{self.connector}/{self.instance}"

    def method(self, key: str) -> Method | None:
        """Return the declared method of a key; None where there is none any more."""
        return next((method for method in self.methods if method.key == key), None)
