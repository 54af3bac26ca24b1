"""Disconnecting: nothing new begins, the provider is told, and the credential is gone, whatever the provider said.

(INT-360 to INT-366.) What was collected stays. Who does this holds the instance's turn, and no run of it is active.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal

from headwater import clock, limits
from headwater.connect.changes import USABLE, standing_of
from headwater.connect.failures import AuthFailure
from headwater.connect.model import Connection, Target
from headwater.connect.ports import Authenticator, Custody, Registry
from headwater.connect.reading import Held, Material
from headwater.connect.revoking import revoke
from headwater.errors import HeadwaterError

Revocation = Literal["done", "failed", "unsupported"]
_TOLD = USABLE | {"followable", "refused"}
"""How a connection stands while its provider, and the way that its credential is sent, are those it was made for."""


async def disconnect(
    registry: Registry, custody: Custody, authenticator: Authenticator, material: Material, target: Target
) -> tuple[str, Revocation] | None:
    """Disconnect what an instance holds. Return the connection and what the provider said; None where it holds none."""
    held = registry.held(target.owner, target.instance_id)
    if not held:
        await _clear(registry, custody, target)
        return None
    credentials = [(connection, await _read(material, target, connection)) for connection in held]
    for connection in held:
        revoke(registry, target, connection, str(connection.revision))
    revoked = [await _told(authenticator, target, *pair) for pair in credentials]
    await _clear(registry, custody, target)
    return held[-1].reference, _worst(revoked)


async def _read(material: Material, target: Target, connection: Connection) -> Held | None:
    """Return the credential, as long as it can be had: without it the provider cannot be told."""
    method = target.method(connection.profile)
    try:
        return None if method is None else await material.read(method, connection)
    except HeadwaterError:
        return None


async def _told(authenticator: Authenticator, target: Target, connection: Connection, held: Held | None) -> Revocation:
    """Tell the provider, once and within a deadline (INT-364), where the credential may still go: to no other one."""
    method = target.method(connection.profile)
    if method is None or held is None or standing_of(connection, target, clock.millis()) not in _TOLD:
        return "failed"
    try:
        async with asyncio.timeout(limits.DISCONNECT_SECONDS):
            return "done" if await authenticator.disconnect(method, held.credential) else "unsupported"
    except (TimeoutError, AuthFailure, HeadwaterError):
        return "failed"


async def _clear(registry: Registry, custody: Custody, target: Target) -> None:
    """Erase everything that custody holds for the instance; what cannot be erased now is said."""
    if custody.read_only:
        return
    for connection, version in registry.versions(target.owner, target.instance_id):
        await custody.delete(connection, version)
        registry.forget(connection, version)


def _worst(revoked: Sequence[Revocation]) -> Revocation:
    return next((one for one in ("failed", "unsupported") if one in revoked), "done")
