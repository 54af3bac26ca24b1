"""What an owner copies in custody: the credential of one connection for another. No program reads it (CLI-1086)."""

from collections.abc import Mapping
from typing import Any

from headwater.configuration.selecting import Selection
from headwater.host import Host
from headwater.owner.served import check_configuration


async def copied(host: Host, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Connect the instance that is selected with a copy of the credential of the connection that is named."""
    check_configuration(host.settings, asked)
    selection = Selection(*asked["selection"])
    return {"copied": await host.reusing.copy(selection, asked["connection"], asked["configuration_revision"])}
