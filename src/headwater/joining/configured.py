"""What is configured: `config.toml`, and the instances that only `collect.toml` has (decision 25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.configuration.reading import beside, read, read_if_there

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.catalog.defined import Defined
    from headwater.catalog.folders import ConnectorFolder
    from headwater.catalog.instances import Instance
    from headwater.configuration.model import Configuration, Entry
    from headwater.configuration.revisions import Declared
    from headwater.manifest.integration import Integration
    from headwater.settings import Settings


def configuration_of(settings: Settings, *, needed: bool = True, defined: bool = True) -> Configuration:
    """Read the configuration, or raise `invalid_configuration`; where it is not `needed`, there may be no file yet.

    With `defined`, instances of definitions that were named on the command line are there like others (CLI-1066).
    """
    from headwater.catalog.instances import Instances

    configuration = (read if needed else read_if_there)(settings.config_path, shipped)
    names = [name.partition("/") for name in Instances(settings.collect_path).all()]
    found = beside(configuration, ((connector, instance) for connector, _, instance in names))
    return _with_defined(settings, found) if defined else found


def _with_defined(settings: Settings, configuration: Configuration) -> Configuration:
    """Add what is recorded of definitions; what is configured by the same names stays alone."""
    if not settings.definitions_dir.exists():
        return configuration
    from msgspec.structs import replace

    from headwater.catalog.definitions import Definitions
    from headwater.configuration.model import unpinned

    taken = {name for entry in configuration.entries for name in (entry.alias, entry.instance_id, entry.name)}
    rows = Definitions(settings.definitions_dir).recorded().values()
    entries = [replace(unpinned(row.connector, row.instance), definition=row.digest) for row in rows]
    added = (entry for entry in entries if not taken & {entry.alias, entry.name})
    return replace(configuration, entries=(*configuration.entries, *added))


def check_enabled(settings: Settings, connector: str) -> None:
    """Raise `invalid_configuration` where the configuration disables a connector."""
    from headwater.configuration.refusals import unusable
    from headwater.configuration.selecting import DISABLED

    if connector in read_if_there(settings.config_path, shipped).disabled:
        raise unusable(DISABLED)


def folder_of(settings: Settings, entry: Entry, collected: Instance | None) -> ConnectorFolder | Defined:
    """Return what serves an instance: its definition, the release that it opted in to, or its connector's folder.

    Of releases nothing is read for an instance without the key, and the lock for none (CLI-528).
    """
    if entry.definition is not None:
        return _defined(settings, entry.definition)
    if collected is not None and collected.release is not None:
        from headwater.joining.released import released

        return released(settings, collected.release, entry.connector)
    return connector_of(settings, entry.connector, collected)


def connector_of(settings: Settings, connector: str, collected: Instance | None) -> ConnectorFolder:
    """Return the folder whose program is an instance's: the one that it is collected from, or the one of its name.

    Raise `unsupported` for a connector that a release alone has: it can be asked, and has no program.
    """
    from headwater.catalog.folders import Catalog, folder_at
    from headwater.errors import refuse

    if collected is not None and collected.folder is not None:
        return folder_at(collected.folder)
    catalog = Catalog(settings.connectors_dir)
    if collected is not None and collected.release is not None and catalog.named(connector) is None:
        message = "This connector is of a release of definitions: it can be asked, and has nothing to collect with."
        command = f"headwater operations list {collected.name}"
        raise refuse("unsupported", message, safe="Nothing was started.", command=command)
    return catalog.find(connector)


def _defined(settings: Settings, digest: str) -> Defined:
    from headwater.catalog.definitions import Definitions
    from headwater.errors import refuse

    found = Definitions(settings.definitions_dir).serving(digest)
    if found is None:
        message = "What was lowered of the definition cannot be read; ask with the definition's file again."
        raise refuse("description_unavailable", message, next_action="retry_explicitly", safe="Nothing was sent.")
    return found


def declared_by(settings: Settings, folder: ConnectorFolder | Defined) -> Declared:
    """Return what a connector declares that an instance of it is derived from, and what is believed at its provider."""
    from headwater.configuration.revisions import Declared
    from headwater.manifest.document import digest

    integration, options = folder.integration, folder.option_rules
    methods = {} if integration is None else integration.methods
    rule = options.get("endpoint")
    endpoint = rule.get("default") if isinstance(rule, dict) else None
    believed = believed_at(settings, integration)
    return Declared(
        version=folder.version,
        methods=methods,
        takes_endpoint="endpoint" in options,
        endpoint=endpoint if isinstance(endpoint, str) else None,
        profile=folder.default_profile,
        trust="" if believed is None else digest(believed),
    )


def believed_at(settings: Settings, integration: Integration | None) -> str | None:
    """Return the certificates that the operator has believed at a connector's provider, None for the system's."""
    from headwater.catalog.certificates import certificates
    from headwater.catalog.instances import Instances

    if integration is None:
        return None
    return certificates(Instances(settings.collect_path).providers().get(integration.provider, {}))


def placed_options(settings: Settings, name: str, folder: ConnectorFolder) -> dict[str, str]:
    """Return the options that `config.toml` gives an instance: its endpoint, where its connector takes one."""
    entry = read_if_there(settings.config_path).find(*name.split("/"))
    if entry is None or entry.endpoint is None or "endpoint" not in folder.option_rules:
        return {}
    return {"endpoint": entry.endpoint}


def shipped() -> Collection[str]:
    """Return the names of the connectors that this build brings along."""
    from headwater.catalog.folders import bundled

    return {folder.name for folder in bundled()}
