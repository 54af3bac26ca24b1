"""What an owner serves: each configured instance, with its integration where that brings code."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.catalog.instances import Instances
from headwater.configuration.model import Entry
from headwater.configuration.revisions import derived
from headwater.configuration.selecting import Selection, select
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import configuration_of, declared_by, folder_of
from headwater.manifest.integration import Integration
from headwater.settings import Settings


@dataclass(frozen=True)
class Served:
    """An instance. `integration` is None where no code of it is needed: the owner itself signs in, and nothing more.

    It `is_automatic` where it starts with the owner. `selection` moves with the configuration and with the code.
    `verify` raises where the files are not those that were added.
    """

    connector: str
    instance: str
    alias: str
    instance_id: str
    configuration_revision: str
    selection: str
    endpoint: str
    folder: Path
    verify: Callable[[], None]
    integration: Integration | None
    is_automatic: bool = False


def check_configuration(settings: Settings, asked: Mapping[str, Any]) -> None:
    """Refuse a client that means another configuration than the one that this owner reads."""
    if asked["configuration"] != str(settings.config_path):
        message = "The owner of this state directory was started with another configuration."
        raise refuse("owner_build_mismatch", message, command="headwater setup owner-stop")


def automatic(settings: Settings) -> Iterator[Served]:
    """Yield the instances that start with the owner; one that cannot be served refuses only whoever asks for it.

    Raise `invalid_configuration` where the file cannot be used.
    """
    for entry in _entries(settings):
        if entry.startup == "automatic":
            with suppress(HeadwaterError):
                yield _served(settings, entry)


def selected(settings: Settings, selection: Selection) -> Served:
    """Return the instance that is selected, or raise why there is none."""
    return _served(settings, select(configuration_of(settings), selection))


def identified(settings: Settings, instance_id: str) -> Served:
    """Return the instance of an id, or raise `not_found`."""
    for entry in _entries(settings):
        if entry.instance_id == instance_id:
            return _served(settings, entry)
    raise refuse("not_found", "The configuration has no such instance.", command="headwater instances list")


def _entries(settings: Settings) -> list[Entry]:
    return [entry for entry in configuration_of(settings).instances if entry.pins is None and entry.enabled]


def _served(settings: Settings, entry: Entry) -> Served:
    if entry.pins is not None:
        raise refuse("unsupported", "An instance of an older format cannot be served.", stage="admission")
    folder = folder_of(settings, entry, Instances(settings.collect_path).all().get(entry.name))
    now = derived(entry, declared_by(settings, folder))
    return Served(
        connector=entry.connector,
        instance=entry.instance,
        alias=entry.alias,
        instance_id=entry.instance_id,
        configuration_revision=now.configuration_revision,
        selection=folder.selection(now.configuration_revision),
        endpoint=now.endpoint or "",
        folder=folder.path,
        verify=folder.verify,
        integration=folder.integration if folder.program else None,
        is_automatic=entry.startup == "automatic",
    )
