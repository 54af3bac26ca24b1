"""What a connection reaches beyond this program: its provider, and the place of its credential."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.connect.envelope import Credential, Envelope
from headwater.connect.fields import kept
from headwater.errors import refuse
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.configuration.model import Configuration
    from headwater.connect.entries import SignIn
    from headwater.connect.model import Target
    from headwater.connect.ports import Authenticator, Custody
    from headwater.connect.reading import Mounted
    from headwater.manifest.auth import Method
    from headwater.secret import Secret


def custody_of(settings: Settings, configuration: Configuration) -> tuple[Custody, Mounted | None]:
    """Return the custody that is configured, and the same once more where it is a mounted folder."""
    from headwater.catalog.instances import Instances
    from headwater.vault.choosing import Choice, custody_for, sealed_file

    table = Instances(settings.collect_path).custody()
    chosen = configuration.custody
    choice = Choice(
        binding=None if chosen is None else chosen.binding,
        directory=None if chosen is None else chosen.directory,
        secret_service_socket=configuration.secret_service_socket,
        sealed=None if table is None else sealed_file(table),
    )
    custody = custody_for(choice)
    if choice.directory is None:
        return custody, None
    from headwater.vault.mounted import MountedCustody

    mounted = MountedCustody(choice.directory)
    return mounted, mounted


def authenticator_of(target: Target) -> Authenticator:
    """Return who signs in to an instance's provider, and asks it whose a credential is.

    The owner of the configuration wrote the endpoint there: so it may be an address of this machine or its networks.
    """
    from headwater.outbound.authenticating import Declared
    from headwater.outbound.client import Client, Reach

    return Declared(Client(Reach(private=target.is_placed)), target.endpoint, target.instance_id)


def sign_in_by(authenticator: Authenticator) -> SignIn:
    """Return how fields are exchanged for a credential."""

    async def sign_in(method: Method, fields: Mapping[str, Secret]) -> Credential:
        got = await authenticator.start(method, fields)
        if not isinstance(got, Envelope):
            raise refuse("unsupported", "This way to sign in asks for more than can be answered here.")
        return Credential(got, kept(method, fields))

    return sign_in
