"""Proof keys for the code grant (RFC 7636): S256, and nothing weaker."""

from base64 import urlsafe_b64encode
from hashlib import sha256

from headwater import clock


def verifier() -> str:
    """Return 43 characters out of 32 random bytes (RFC 7636 4.1)."""
    return clock.token()


def challenge(verifier: str) -> str:
    """Return what the provider is told of a verifier beforehand (RFC 7636 4.2)."""
    return urlsafe_b64encode(sha256(verifier.encode("ascii")).digest()).decode("ascii").rstrip("=")
