"""The subject of an approval: one write, as exactly as it can be named. Its digest is what a person approves."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from headwater import limits
from headwater.errors import refuse
from headwater.operate.description import Described
from headwater.operate.writes.model import MODE, Issuer, Policy, Preparation

FORMAT: Final = "connectors.approval-subject/v1"
CANONICAL: Final = "adapter-v1-canonical-json"
_REQUEST: Final = "mutation-request/v2"
_KEY: Final = b"mutation-key/v1\0"

_canonical: Final = msgspec.json.Encoder(order="sorted", decimal_format="number").encode


class Place(Struct, frozen=True):
    """Where a write goes: an instance as it is configured, and a connection at its revision."""

    instance_id: str
    configuration_revision: str
    connection: str
    connection_revision: int
    profile: str


def digest_of(value: Any) -> str:
    """Return the digest of a value's canonical JSON: keys sorted, no white space, numbers with the digits they have."""
    return sha256(_canonical(value)).hexdigest()


def prepared(
    place: Place, described: Described, given: Mapping[str, Any], policy: Policy, issuer: Issuer
) -> Preparation:
    """Return a write with its subject, in which every absence is said (facts-cli 5.2)."""
    caller = f"connectors.local-owner/{issuer.issuer_id}/{policy.owner_uid}"
    authority = {"id": policy.authority, "sha256": digest_of(msgspec.to_builtins(policy))}
    subject = {
        "format": FORMAT,
        "target": _target(place, described),
        "authority": {
            "scope": {"tenant": None, "realm": None, "caller": caller, "executor": None},
            "current_authority": authority,
            "executor": None,
        },
        "origin": {"kind": "direct", "authority_ref": place.instance_id},
        "route": None,
        "canonicalization": CANONICAL,
        "input_sha256": digest_of(given),
        "approval_mode": MODE,
    }
    if len(_canonical(subject)) > limits.SUBJECT_BYTES:
        raise refuse("capacity", "What identifies this write is larger than 8 KiB.", safe="Nothing was sent.")
    return Preparation(subject, digest_of(subject), issuer, policy)


def fingerprint(place: Place, described: Described, given: Mapping[str, Any]) -> str:
    """Return what tells one request from another for a key that was used before (facts-cli 5.6)."""
    whole = {"target": _target(place, described), "canonicalization": CANONICAL, "input_sha256": digest_of(given)}
    return digest_of({"format": _REQUEST, "route": None, **whole})


def key_digest(key: bytes) -> str:
    """Return what is kept of a key that makes a write the same one: 1 to 256 bytes of any kind."""
    if not 1 <= len(key) <= limits.IDEMPOTENCY_KEY_BYTES:
        raise refuse("invalid_input", "An idempotency key is 1 to 256 bytes.", field="idempotency_key")
    return sha256(_KEY + key).hexdigest()


def _target(place: Place, described: Described) -> dict[str, Any]:
    operation = described.operation
    return {
        "instance": place.instance_id,
        "operation": operation.id,
        "connection": place.connection,
        "connection_revision": place.connection_revision,
        "contract": operation.contract or None,
        "profile": place.profile,
        "descriptor_revision": described.revision,
        "configuration_revision": place.configuration_revision,
    }
