"""A version that shows whether its bytes are still those that were written.

A keyring is open to its owner's other programs. A version's name carries a digest of its bytes, keyed with random ones
that are kept beside them: it proves the bytes to who can read them, and tells nothing to who has the name alone.
"""

import hmac
from typing import Final

from headwater import clock
from headwater.secret import Secret
from headwater.vault.refusals import unavailable

_KEY_BYTES: Final = 32


def pinned(material: Secret) -> tuple[str, Secret]:
    """Return the name of a new version, and what is to be kept under it."""
    key = clock.entropy(_KEY_BYTES)
    return f"{clock.identifier('ver')}.{_digest(key, material)}", Secret(key + material.reveal())


def unpinned(version: str, kept: Secret) -> Secret:
    """Return the material of a version, or raise `custody_unavailable` where something changed it."""
    key, material = kept.reveal()[:_KEY_BYTES], Secret(kept.reveal()[_KEY_BYTES:])
    if not hmac.compare_digest(version.rpartition(".")[2].encode(), _digest(key, material).encode()):
        message = "The credential was changed where it is kept, by something else."
        raise unavailable(message, "repair_connection", "The connection is unharmed; nothing was sent.")
    return material


def _digest(key: bytes, material: Secret) -> str:
    return hmac.new(key, material.reveal(), "sha256").hexdigest()
