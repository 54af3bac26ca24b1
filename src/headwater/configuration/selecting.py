"""Selecting one configured instance: by connector and name, by its alias for as long as that lasts, or by default."""

import re
from typing import Final

from msgspec import Struct

from headwater.configuration.model import CATALOG, Configuration, Entry
from headwater.configuration.refusals import unusable
from headwater.errors import refuse

DISABLED: Final = "the connector of this instance is disabled"
_INVOKED: Final = re.compile(r"([A-Za-z0-9._-]{1,128})(?:/([A-Za-z0-9._-]{1,128}))?")
_TARGET: Final = re.compile(r"([A-Za-z0-9_-]{1,128})/([A-Za-z0-9_-]{1,128})")


class Selection(Struct, frozen=True):
    """What was typed of an instance: a connector and an instance, an alias, or nothing for the default."""

    connector: str | None = None
    instance: str | None = None
    adapter: str | None = None


def target(text: str) -> Selection:
    """Read a positional `<connector>/<instance>`, or raise `invalid_input` of the field `target` (CLI-227)."""
    names = _TARGET.fullmatch(text)
    if names is None:
        raise refuse("invalid_input", "An instance is named <connector>/<instance>, as in git/here.", field="target")
    return Selection(*names.groups())


def invoked(configuration: Configuration, text: str) -> Entry:
    """Return the instance of `<connector>[/<instance>]`: without a name, the connector's only one (CLI-552 to CLI-557).

    Raise `invalid_input` of the field `target`, `not_found`, or `instance_ambiguous` with the instances there are.
    """
    names = _INVOKED.fullmatch(text)
    if names is None:
        message = "What is asked is named <connector> or <connector>/<instance>, as in github/me."
        raise refuse("invalid_input", message, field="target")
    connector, instance = names.groups()
    if instance is not None:
        return select(configuration, Selection(connector, instance))
    found = sorted(entry.name for entry in configuration.instances if entry.connector == connector)
    if len(found) > 1:
        message = "The connector has several instances; name one of them."
        raise refuse("instance_ambiguous", message, safe="Nothing was asked or sent.", instances=found)
    return select(configuration, Selection(*(found[0].split("/") if found else (connector, ""))))


def well_formed(selection: Selection) -> Selection:
    """Return a selection that says one thing, or raise `invalid_input` (CLI-201, CLI-203)."""
    connector, instance, adapter = selection.connector, selection.instance, selection.adapter
    if adapter is not None and (connector is not None or instance is not None):
        raise refuse("invalid_input", "--adapter does not stand beside --connector and --instance.")
    if (connector is None) is not (instance is None):
        raise refuse("invalid_input", "--connector and --instance go together: a name is of its connector.")
    return selection


def select(configuration: Configuration, selection: Selection) -> Entry:
    """Return the instance that is meant, or raise.

    `invalid_input` where nothing is (CLI-205), `not_found` where none is configured (CLI-206, CLI-207), and
    `invalid_configuration` for a legacy entry that has no connector (CLI-209).
    """
    selection = _default(configuration) if well_formed(selection) == Selection() else selection
    connector, instance = selection.connector, selection.instance
    if connector is None or instance is None:
        entry = configuration.by_alias(selection.adapter or "")
    else:
        entry = configuration.find(connector, instance)
        legacy = configuration.by_alias(instance)
        if connector == CATALOG and entry is None and legacy is not None and legacy.unmigrated:
            raise unusable("the entry serves no connector that is known here", "legacy_entry_unmigrated")
    if entry is None:
        command = "headwater instances add <connector>/<instance>"
        raise refuse("not_found", "No instance of this name is configured.", command=command)
    return entry


def admitted(entry: Entry) -> Entry:
    """Return an instance that something can be done with.

    Raise `invalid_configuration` where its connector is disabled (CLI-231), `unsupported` for an entry that a program
    of its own would have to serve (decision 25).
    """
    if entry.pins is not None:
        raise refuse("unsupported", "Instances that pin a program of their own are listed, and not served here.")
    if not entry.enabled:
        raise unusable(DISABLED)
    return entry


def _default(configuration: Configuration) -> Selection:
    if configuration.default_instance is not None:
        connector, _, instance = configuration.default_instance.partition("/")
        return Selection(connector, instance)
    if configuration.default_adapter is not None:
        return Selection(adapter=configuration.default_adapter)
    message = "Say which instance: --connector and --instance, or a default_instance in the configuration."
    raise refuse("invalid_input", message, command="headwater instances list")
