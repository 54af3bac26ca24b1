"""What the configuration says, as frozen values: who owns it, its instances, and where credentials are kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

Format = Literal[
    "connectors-local/1", "connectors-local/2", "connectors-local/3", "connectors-local/4", "connectors-local/5"
]
Startup = Literal["on-demand", "automatic"]
CustodyBinding = Literal["secret_service", "macos_keychain", "windows_credential_manager", "mounted_secret"]

CATALOG = "catalog"
"""The implementation of a legacy entry that serves a connector: its names are that connector's, once it is known."""


class Executable(Struct, frozen=True):
    """A program that is pinned by its bytes: `sha256` is 64 lower hex digits, `args` go to it as they stand."""

    path: Path
    sha256: str
    args: tuple[str, ...] = ()


class Permissions(Struct, frozen=True):
    """The exact profiles and operations that an instance may use; nothing else."""

    profiles: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()


class Pins(Struct, frozen=True):
    """What a legacy entry fixes of its provider. `private_protocol` is absent in the first format alone."""

    adapter_id: str
    protocol: str
    private_protocol: str | None
    executable: Executable


class Entry(Struct, frozen=True):
    """One configured instance.

    An unpinned one is served by the connector of its name; its revisions are empty until they are derived from what
    the connector declares (`configuration/revisions.py`), and without `permissions` it may use all that is declared.
    A pinned one states its revisions, and without `permissions` it may use nothing. A legacy catalog entry whose
    connector is not known is `unmigrated`: it is no instance, and can be selected by its alias only (CLI-209).
    `definition` is the digest of the definition that serves it, where it is of one that was named on the command line.
    """

    connector: str
    instance: str
    alias: str
    instance_id: str
    endpoint: str | None = None
    profile: str | None = None
    description: str = ""
    startup: Startup = "on-demand"
    restart: Literal["never"] = "never"
    permissions: Permissions | None = None
    pins: Pins | None = None
    enabled: bool = True
    configuration_revision: str = ""
    credential_revision: str | None = None
    in_adapters: bool = False
    unmigrated: bool = False
    definition: str | None = None

    @property
    def name(self) -> str:
        """The instance, as `<connector>/<instance>`."""
        return f"{self.connector}/{self.instance}"


class Consumer(Struct, frozen=True):
    """A program that may be started with a credential: whose variables pass to it, and of which instances."""

    name: str
    executable: Executable
    pass_env: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()


class Custody(Struct, frozen=True):
    """Where credentials are kept, where the configuration says so. `directory` is set for `mounted_secret` alone."""

    binding: CustodyBinding
    directory: Path | None = None


class Configuration(Struct, frozen=True):
    """A configuration that was read to the letter.

    `custody` is None for the platform's own; `disabled` are connectors. `approval_clock` is the format of the table of
    that name, empty where it names none, and None where there is no such table.
    """

    format: Format
    owner_uid: int
    entries: tuple[Entry, ...] = ()
    default_adapter: str | None = None
    default_instance: str | None = None
    secret_service_socket: Path | None = None
    consumers: Mapping[str, Consumer] = field(default_factory=dict)
    custody: Custody | None = None
    disabled: frozenset[str] = frozenset()
    approval_clock: str | None = None

    @property
    def instances(self) -> tuple[Entry, ...]:
        """The entries that are instances of a connector, each under a name of its own.

        An instance has the name that a catalog entry would be given: that one goes by its alias alone then (CLI-553).
        """
        placed = {entry.name for entry in self.entries if not entry.in_adapters}
        return tuple(one for one in self.entries if not (one.unmigrated or (one.in_adapters and one.name in placed)))

    def find(self, connector: str, instance: str) -> Entry | None:
        """Return the instance of this name, None where there is none."""
        named = (entry for entry in self.instances if (entry.connector, entry.instance) == (connector, instance))
        return next(named, None)

    def by_alias(self, alias: str) -> Entry | None:
        """Return the entry of this alias, None where there is none."""
        return next((entry for entry in self.entries if entry.alias == alias), None)


def unpinned(connector: str, instance: str) -> Entry:
    """Return an instance of which nothing is said but its name (CLI-182)."""
    name = f"{connector}.{instance}"
    return Entry(connector, instance, name, name)
