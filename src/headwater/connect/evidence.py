"""What a probe of a credential is worth: whose it is, what it may do, and until when that counts."""

from datetime import datetime

from headwater import clock, limits
from headwater.connect.envelope import Credential
from headwater.connect.lifetime import can_refresh
from headwater.connect.model import ALL_OK, Evidence, Identity, Target
from headwater.connect.ports import Probed
from headwater.manifest.auth import Method


def identity_of(probed: Probed) -> Identity:
    """Return the account that a probe found, as it identifies a connection (INT-243)."""
    return Identity(probed.account.kind, probed.account.id, probed.account.display)


def scopes_suffice(method: Method, credential: Credential, probed: Probed) -> bool:
    """Whether the scopes that were granted cover those that the method needs; unknown ones are taken to (INT-245)."""
    granted = probed.scopes if probed.scopes is not None else credential.envelope.scopes
    needed = () if method.oauth is None else method.oauth.minimum_scopes
    return granted is None or set(needed) <= set(granted)


def evidence_of(target: Target, method: Method, credential: Credential, probed: Probed, now_ms: int) -> Evidence:
    """Return what a good probe shows. It counts for the method's lifetime, or less where the provider says so.

    When a credential ends matters to those that nothing but a reconnect renews.
    """
    lifetime = min(method.evidence_lifetime_ms, limits.EVIDENCE_LIFETIME_MAX_MS)
    ends = [now_ms + lifetime, *(_millis(end) for end in (probed.valid_until,) if end is not None)]
    expires_at = None if can_refresh(target, method, credential) else credential.envelope.expires_at
    return Evidence(
        collected_at_ms=now_ms,
        valid_until_ms=min(ends),
        scopes=probed.scopes if probed.scopes is not None else credential.envelope.scopes,
        credential_expires_at_ms=None if expires_at is None else _millis(expires_at),
        checks=ALL_OK,
    )


def _millis(moment: datetime) -> int:
    return clock.micros(moment) // 1000
