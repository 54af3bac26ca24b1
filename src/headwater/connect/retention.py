"""Old credentials: each is erased a day after another took its place, behind a fence that nothing links past."""

from headwater import clock
from headwater.connect.ports import Custody, Registry
from headwater.errors import HeadwaterError


async def erase_old(registry: Registry, custody: Custody, owner: int) -> None:
    """Erase what an owner needs no more, at whatever instance.

    It is a courtesy of whoever passes by: what cannot be erased now is tried again by the next one (CLI-334).
    """
    if custody.read_only:
        return
    try:
        for connection, version in registry.retire(owner, clock.millis()):
            await custody.delete(connection, version)
            registry.forget(connection, version)
    except HeadwaterError:
        return
