"""Proofs as somebody would forge them: with the real key where that is meant, and by hand."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from writes.shop import SELECTION, Shop

from headwater import clock
from headwater.joining.configured import configuration_of
from headwater.joining.reaching import custody_of
from headwater.operate.writes.model import Interval, Preparation, Proof, SigningKey
from headwater.operate.writes.proof import make
from headwater.secret import Secret
from headwater.store.sqlite.approvals import opened
from headwater.vault.signing import sign


def document_of(shop: Shop, key: SigningKey | None = None) -> Secret:
    """Return what custody has of a key, by default of the one that is active."""
    settings = shop.host.settings
    with opened(shop.database, shop.host.connecting.target(SELECTION).owner) as approvals:
        issuer = approvals.issuer()
    assert issuer is not None
    chosen = key or issuer.active
    assert chosen is not None
    custody, _ = custody_of(settings, configuration_of(settings))
    return asyncio.run(custody.read(issuer.issuer_id, chosen.version or ""))


def prepared(shop: Shop, operation: str = "orders.cancel", given: Any = None) -> Preparation:
    """Return a write that is ready to be approved."""
    given = {"number": "7"} if given is None else given
    return shop.host.approving.prepare(SELECTION, operation, (None, None), None, given)[1]


def proof_at(shop: Shop, issued_ms: int, operation: str = "orders.cancel", given: Any = None) -> Proof:
    """Return an approval that was given at a time."""
    preparation, document = prepared(shop, operation, given), document_of(shop)
    key = preparation.issuer.active
    assert key is not None
    now = Interval(issued_ms, issued_ms)
    return make(preparation, key, clock.entropy(32).hex(), now, lambda message: sign(document, message))


def forged(shop: Shop, header: Mapping[str, Any], claims: Mapping[str, Any], document: Secret | None = None) -> Proof:
    """Return a proof of exactly these members, signed with the real key where no other one is given."""
    signed = ".".join(map(_text, (json.dumps(header).encode(), json.dumps(claims).encode())))
    signature = sign(document or document_of(shop), signed.encode())
    return Proof(str(claims.get("reference", "0" * 64)), f"{signed}.{_text(signature)}")


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")
