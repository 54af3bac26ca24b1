"""Old credentials: each is erased a day after another took its place, behind a fence that nothing links past."""

from headwater import clock
from headwater.connect.model import Target
from headwater.connect.ports import Custody, Registry
from headwater.errors import HeadwaterError


async def erase_old(registry: Registry, custody: Custody, target: Target) -> None:
    """Erase what nobody needs any more; call it with the instance's turn.

    It is a courtesy of whoever passes by: what cannot be erased now is tried again by the next one (CLI-334).
    """
    if custody.read_only:
        return
    for connection, version in registry.retire(target.owner, target.instance_id, clock.millis()):
        try:
            await custody.delete(connection, version)
        except HeadwaterError:
            return
        registry.forget(connection, version)
