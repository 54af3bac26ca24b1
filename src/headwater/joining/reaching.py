"""What a connection reaches beyond this program: its provider, and the place of its credential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from headwater.connect.envelope import Credential
from headwater.errors import refuse
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.adapters.by_owner import ByOwner
    from headwater.adapters.code_by_owner import CodeByOwner
    from headwater.adapters.registry import Integrations
    from headwater.configuration.model import Configuration
    from headwater.connect.acquiring import Entering
    from headwater.connect.entries import Means, SignIn
    from headwater.connect.model import Target
    from headwater.connect.ports import Authenticator, Custody, Entry
    from headwater.connect.reading import Mounted
    from headwater.connect.using import Used
    from headwater.manifest.auth import Method
    from headwater.outbound.asking import Asking
    from headwater.outbound.client import Client, Reach
    from headwater.secret import Secret

    Place = tuple[Custody, Mounted | None]


def custody_of(
    settings: Settings, configuration: Configuration, passphrase: Callable[[str], Secret] | None = None
) -> Place:
    """Return the custody that is configured, and the same once more where it is a mounted folder.

    `passphrase` asks a person for the one of a sealed file, by a label, when the file is first used.
    """
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
    custody = custody_for(choice, passphrase)
    if choice.directory is None:
        return custody, None
    from headwater.vault.mounted import MountedCustody

    mounted = MountedCustody(choice.directory)
    return mounted, mounted


def integrations_of(settings: Settings) -> Integrations:
    """Return every integration: bundled, added, and those of folders that instances are collected from."""
    from headwater.adapters.registry import Integrations, Operator
    from headwater.catalog.folders import Catalog, ConnectorFolder, folder_at
    from headwater.catalog.instances import Instances

    instances = Instances(settings.collect_path)
    folders = {folder.name: folder for folder in Catalog(settings.connectors_dir).all()}
    for one in instances.all().values():
        if one.folder is not None and one.connector not in folders:
            folders[one.connector] = ConnectorFolder(one.connector, folder_at(one.folder).path, "folder")
    return Integrations(list(folders.values()), Operator(instances.enabled(), instances.providers()))


def reach_of(settings: Settings, target: Target) -> Reach:
    """Return where the requests of an instance may go, and which certificates are believed there.

    The owner of the configuration wrote the endpoint there: so it may be an address of this machine or its networks.
    What a release says besides may not: its publisher is somebody else.
    """
    from headwater.catalog.certificates import certificates
    from headwater.catalog.instances import Instances
    from headwater.outbound.client import Reach

    instances = Instances(settings.collect_path)
    provider = instances.providers().get(target.provider, {})
    known = instances.all().get(target.name)
    is_released = known is not None and known.release is not None
    origin = target.endpoint if is_released else None
    return Reach(private=target.is_placed, origin=origin, certificates=certificates(provider))


def asking_of(target: Target, used: Used, client: Client) -> Asking:
    """Return what sends an instance's requests by a client, with a credential that was handed out."""
    from headwater.connect.failures import AuthFailure
    from headwater.connect.refusals import refusal_of
    from headwater.outbound.asking import Asking

    method = target.method(used.connection.profile)
    assert method is not None, "a method that is not declared is admitted nowhere"
    try:
        return Asking(client, target.endpoint, method, used.credential)
    except AuthFailure as failure:
        raise refusal_of(failure, "read") from None


def authenticator_of(settings: Settings, target: Target) -> Authenticator:
    """Return who signs in to an instance's provider, and asks it whose a credential is.

    An integration's own code does it in its owner's keeping; an owner is started for that when it is first asked.
    """
    from headwater.adapters.by_scheme import ByScheme
    from headwater.catalog.instances import Instances
    from headwater.outbound.authenticating import Declared
    from headwater.outbound.client import Client

    client_id = Instances(settings.collect_path).providers().get(target.provider, {}).get("client_id")
    declared = Declared(Client(reach_of(settings, target)), target.endpoint, target.instance_id, client_id)
    return ByScheme(declared, hooks_of(settings, target))


def hooks_of(settings: Settings, target: Target) -> ByOwner:
    """Return what has the owner call an integration's hooks for an instance; one is started when it is first asked."""
    from headwater.adapters.by_owner import ByOwner
    from headwater.link.owner import Place, started

    place = Place.of(settings.state_dir)
    return ByOwner(place, target.instance_id, lambda: started(place, settings.config_path))


def code_of(settings: Settings, target: Target, used: Used) -> CodeByOwner:
    """Return what has the owner run an integration's operations for an instance; one is started when it is asked."""
    from headwater.adapters.code_by_owner import CodeByOwner
    from headwater.link.owner import Place, started

    place = Place.of(settings.state_dir)
    return CodeByOwner(place, target.instance_id, lambda: started(place, settings.config_path), used.credential)


def entering_by(
    settings: Settings, target: Target, authenticator: Authenticator, place: Place, means: Means
) -> Entering:
    """Return what chooses how a credential comes in by a method, or refuses where there is no safe way (CLI-351)."""
    from headwater.connect.entries import Entered, FromMount
    from headwater.connect.fields import entry_fields, has_device_grant

    custody, mounted = place

    def entering(method: Method) -> Entry:
        if mounted is not None and (means.ask is not None or means.device):
            raise refuse("invalid_input", "The credential is read from where it is mounted, and not entered.")
        if mounted is not None:
            return FromMount(mounted, target)
        if means.ask is None and entry_fields(method):
            message = (
                "Choose how the credential is entered: --credential-prompt at a terminal, --credential-file with a "
                "file that only you can read, or --credential-stdin with such a file or a pipe."
            )
            raise refuse("protected_entry_unavailable", message, safe="Nothing was asked or sent.")
        if means.device and not has_device_grant(method):
            raise refuse(
                "invalid_input", "This way to sign in knows no other device.", safe="Nothing was asked or sent."
            )
        sign_in = sign_in_by(settings, target, authenticator, means)
        return Entered(means.ask or (lambda _: {}), sign_in, custody)

    return entering


def sign_in_by(settings: Settings, target: Target, authenticator: Authenticator, means: Means) -> SignIn:
    """Return how fields are exchanged for a credential, with a person at hand."""
    from headwater.connect.auth_state import AuthStates, Subject
    from headwater.connect.consenting import Consenting
    from headwater.connect.flows import SignIn as Flow
    from headwater.connect.throttle import OwnCounters, Throttle
    from headwater.outbound.loopback import Loopback
    from headwater.store.sqlite.signing_in import SignInStore
    from headwater.vault.state_keys import StateKeys

    async def sign_in(method: Method, fields: Mapping[str, Secret]) -> Credential:
        with closing(SignInStore(settings.database_path)) as store:
            states = AuthStates(StateKeys(settings.state_keys_path), store)
            flow = Flow(authenticator, states, Throttle(OwnCounters(), store))
            person = str(target.owner)
            subject = Subject(target.authority, f"{target.instance_id}/{method.key}", person, person)
            consenting = Consenting(flow, subject, means.person, Loopback.listening, means.device)
            return await consenting.through(method, fields)

    return sign_in
