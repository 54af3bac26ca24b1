"""Reusing a credential: which connections of other instances one may be copied from, for the instance of a definition.

Whoever copies it sends it where the source's own instance would, and finds out whose it is in the same way (CLI-1081).
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from headwater.connect.changes import binding_of, standing_of
from headwater.connect.entries import is_static
from headwater.connect.model import Connection, Target
from headwater.connect.state import state_of
from headwater.manifest.auth import Method

_ITS_OWN: Final = "configuration"
"""Where an account is named after its instance: two instances never have the same one."""


class Source(Struct, frozen=True):
    """A connection of another instance, and that instance as it is configured now."""

    connection: Connection
    target: Target


def sources_for(target: Target, sources: Iterable[Source], now_ms: int) -> list[Source]:
    """Return the connections whose credential an instance may have a copy of, in the order given."""
    method = target.method(target.profile or "")
    if method is None or not _is_copyable(method):
        return []
    return [source for source in sources if _suits(source, target, method, now_ms)]


def _is_copyable(method: Method) -> bool:
    """Whether two connections can share a credential: nothing renews it, and it is sent to the service alone."""
    goes_elsewhere = method.oauth is not None
    is_its_own = method.identity is not None and method.identity.source == _ITS_OWN
    return is_static(method) and not goes_elsewhere and not is_its_own


def _suits(source: Source, target: Target, method: Method, now_ms: int) -> bool:
    """Whether a connection is good as it stands, under what is configured of it now, and under what the copy would be.

    That its instance may do other things with it, or counts a check for longer, is no difference.
    """
    connection, own = source.connection, source.target
    if own.connector != target.connector or own.instance_id == target.instance_id:
        return False
    standing = standing_of(connection, own, now_ms)
    if standing != "current" or state_of(connection, standing, now_ms, enabled=own.enabled) != "ready":
        return False
    held, wanted = connection.binding, binding_of(target, method)
    binds = (held.executable, held.authority, held.authentication)
    return binds == (wanted.executable, wanted.authority, wanted.authentication)
