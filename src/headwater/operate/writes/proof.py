"""Proofs: a subject under the signature of the active key, for one use within about five minutes (facts-cli 5.2).

A compact JWS with exactly one header, so that there is nothing in it to choose or to be confused by (RFC 7515, 8037).
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.operate.writes.model import Interval, Preparation, Proof, SigningKey
from headwater.operate.writes.subject import digest_of

TYPE: Final = "b10x.connectors-approval.v1+jws"
Sign = Callable[[bytes], bytes]
Verify = Callable[[str, bytes, bytes], bool]
"""Tells whether a signature is the one of a public key, in base64url, under a message."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_HEX: Final = frozenset("0123456789abcdef")


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alg: str
    kid: str
    typ: str


class _Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    iss: str
    aud: str
    reference: str
    subject: dict[str, Any]
    iat: int
    nbf: int
    exp: int


class _Parts(NamedTuple):
    header: _Header
    claims: _Claims
    signed: bytes
    signature: bytes


def make(preparation: Preparation, key: SigningKey, reference: str, now: Interval, sign: Sign) -> Proof:
    """Sign a subject. `reference` is 64 hexadecimal digits that nobody guesses."""
    issued, issuer = now.lower_ms // 1000, preparation.issuer
    claims = _Claims(
        iss=issuer.name,
        aud=issuer.audience,
        reference=reference,
        subject=dict(preparation.subject),
        iat=issued,
        nbf=issued - limits.PROOF_EARLY_SECONDS,
        exp=issued + limits.PROOF_SECONDS,
    )
    signed = b".".join(map(_text, (_encode(_Header("Ed25519", key.key_id, TYPE)), _encode(claims))))
    return Proof(reference, b".".join((signed, _text(sign(signed)))).decode())


def read_proof(content: str) -> Proof | None:
    """Read what the file of a proof holds; None for what is none. Its signature is looked at later."""
    try:
        proof = msgspec.json.decode(content, type=Proof)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    fits = len(proof.reference) == 64 and _HEX.issuperset(proof.reference)
    return proof if fits and len(proof.evidence) <= limits.PROOF_TOKEN_BYTES else None


def check(proof: Proof, preparation: Preparation, now: Interval, verify: Verify) -> None:
    """Raise `approval_refused` unless this proof approves this write, by the key that signs now, at this time."""
    parts, issuer = _parts(proof), preparation.issuer
    key = issuer.active
    if parts is None or key is None or (parts.header.alg, parts.header.typ) != ("Ed25519", TYPE):
        raise _refused("It is no approval of this machine.")
    if parts.header.kid != key.key_id or not verify(key.public, parts.signed, parts.signature):
        raise _refused("The key that signs approvals has not signed it.")
    claims = parts.claims
    if (claims.iss, claims.aud, claims.reference) != (issuer.name, issuer.audience, proof.reference):
        raise _refused("It is another machine's.")
    if not claims.nbf * 1000 <= now.lower_ms or not now.upper_ms < claims.exp * 1000:
        raise _refused("Its time is over: an approval counts for five minutes.")
    if digest_of(claims.subject) != preparation.sha256:
        raise _refused("It approves something else than is asked now, or something changed since.")


def _parts(proof: Proof) -> _Parts | None:
    try:
        head, body, signature = proof.evidence.encode("ascii").split(b".")
        texts = [_bytes(part) for part in (head, body, signature)]
        if len(texts[0]) > limits.PROOF_HEADER_BYTES or len(texts[1]) > limits.PROOF_CLAIMS_BYTES:
            return None
        header = msgspec.json.decode(texts[0], type=_Header)
        claims = msgspec.json.decode(texts[1], type=_Claims)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    return _Parts(header, claims, head + b"." + body, texts[2])


def _text(content: bytes) -> bytes:
    return urlsafe_b64encode(content).rstrip(b"=")


def _bytes(text: bytes) -> bytes:
    """Read base64url without padding, in its one spelling."""
    content = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    if _text(content) != text:
        raise ValueError("another spelling")
    return content


def _refused(why: str) -> HeadwaterError:
    return refuse("approval_refused", f"The approval does not fit. {why}", safe="Nothing was sent.")
