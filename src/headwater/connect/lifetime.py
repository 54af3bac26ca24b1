"""What is left of a credential, and whether it can be renewed without a person."""

from datetime import datetime, timedelta
from typing import Final

from headwater import limits
from headwater.connect.envelope import Credential
from headwater.connect.model import Target
from headwater.manifest.auth import Method

_LEAD: Final = timedelta(seconds=limits.REFRESH_LEAD_SECONDS)


def is_due(credential: Credential, now: datetime) -> bool:
    """Whether fewer than 60 seconds of a credential are left."""
    expires_at = credential.envelope.expires_at
    return expires_at is not None and expires_at - now < _LEAD


def has_expired(credential: Credential, now: datetime) -> bool:
    """Whether nothing of a credential is left."""
    expires_at = credential.envelope.expires_at
    return expires_at is not None and expires_at <= now


def can_refresh(target: Target, method: Method, credential: Credential) -> bool:
    """Whether a credential can be renewed without a person: only where that is declared (INT-260)."""
    if method.scheme == "oauth2_grant":
        return credential.envelope.refresh_token is not None
    return method.scheme == "oauth2_client_credentials" or (method.scheme == "hooks" and target.refreshes)


def is_repeatable(method: Method) -> bool:
    """Whether an exchange whose answer was lost may be sent again: nothing is used up by it."""
    return method.scheme == "oauth2_client_credentials"
