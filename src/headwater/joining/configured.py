"""What is configured: `config.toml`, and the instances that only `collect.toml` has (decision 25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.configuration.reading import beside, read, read_if_there

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.catalog.folders import ConnectorFolder
    from headwater.catalog.instances import Instance
    from headwater.configuration.model import Configuration, Entry
    from headwater.configuration.revisions import Declared
    from headwater.settings import Settings


def configuration_of(settings: Settings, *, needed: bool = True) -> Configuration:
    """Read the configuration, or raise `invalid_configuration`; where it is not `needed`, there may be no file yet."""
    from headwater.catalog.instances import Instances

    configuration = (read if needed else read_if_there)(settings.config_path, shipped)
    names = [name.partition("/") for name in Instances(settings.collect_path).all()]
    return beside(configuration, ((connector, instance) for connector, _, instance in names))


def check_enabled(settings: Settings, connector: str) -> None:
    """Raise `invalid_configuration` where the configuration disables a connector."""
    from headwater.configuration.refusals import unusable
    from headwater.configuration.selecting import DISABLED

    if connector in read_if_there(settings.config_path, shipped).disabled:
        raise unusable(DISABLED)


def folder_of(settings: Settings, entry: Entry, collected: Instance | None) -> ConnectorFolder:
    """Return the connector that serves an instance: the folder that it is collected from, or the one of its name."""
    from headwater.catalog.folders import Catalog, folder_at

    if collected is not None and collected.folder is not None:
        return folder_at(collected.folder)
    return Catalog(settings.connectors_dir).find(entry.connector)


def declared_by(folder: ConnectorFolder) -> Declared:
    """Return what a connector declares that an instance of it is derived from."""
    from headwater.configuration.revisions import Declared

    integration, options = folder.integration, folder.option_rules
    methods = {} if integration is None else integration.methods
    rule = options.get("endpoint")
    endpoint = rule.get("default") if isinstance(rule, dict) else None
    return Declared(folder.version, methods, "endpoint" in options, endpoint if isinstance(endpoint, str) else None)


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
