"""The keys of approvals: made, kept as one document in custody, and used to sign. Ed25519 (RFC 8032)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from headwater import clock
from headwater.errors import refuse
from headwater.operate.writes.keys import KeyPair
from headwater.secret import Secret

FORMAT: Final = "approval-signing-custody/1"


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    seed: str

    def __repr__(self) -> str:
        return "_Document(…)"


def new_pair() -> KeyPair:
    """Make a key."""
    private = Ed25519PrivateKey.generate()
    seed = private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    document = Secret(msgspec.json.encode(_Document(FORMAT, _text(seed))))
    return KeyPair(clock.identifier("key"), _public(private), document)


def public_of(document: Secret) -> str | None:
    """Return the public half of what custody has; None where that is no key."""
    try:
        return _public(_private(document))
    except ValueError:
        return None


def sign(document: Secret, message: bytes) -> bytes:
    """Sign a message with what custody has. Raise `custody_unavailable` where that is no key."""
    try:
        return _private(document).sign(message)
    except ValueError:
        message_ = "What is kept of the key that signs approvals is damaged; make another with approvals key-rotate."
        raise refuse("custody_unavailable", message_, next_action="check_configuration") from None


def verify(public: str, message: bytes, signature: bytes) -> bool:
    """Whether a signature is that of a public key, in base64url, under a message."""
    try:
        Ed25519PublicKey.from_public_bytes(_bytes(public)).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _private(document: Secret) -> Ed25519PrivateKey:
    try:
        held = msgspec.json.decode(document.reveal(), type=_Document)
    except msgspec.DecodeError:
        held = None
    if held is None or held.format != FORMAT:
        raise ValueError("not a signing key")
    return Ed25519PrivateKey.from_private_bytes(_bytes(held.seed))


def _public(private: Ed25519PrivateKey) -> str:
    return _text(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
