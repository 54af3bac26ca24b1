"""Opting in: an instance is served by an installed release of definitions where its key says so, and never else.

The key is `release` of the instance in `collect.toml`: the SHA-256 of the release's index (CLI-528).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from headwater import clock
from headwater.catalog.folders import Catalog
from headwater.catalog.instances import Instance, Instances, valid_name
from headwater.configuration.model import unpinned
from headwater.configuration.reading import beside
from headwater.configuration.selecting import admitted, target
from headwater.connect.changes import standing_of
from headwater.connect.state import state_of
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import check_enabled, configuration_of
from headwater.joining.released import released
from headwater.joining.targets import Targets
from headwater.manifest.document import is_digest
from headwater.store.installed import digests, installed
from headwater.store.sqlite.connections import looked_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.configuration.model import Configuration, Entry
    from headwater.connect.model import Connection, Target
    from headwater.settings import Settings

Shown = dict[str, Any]
Disposition = Literal["created", "changed", "unchanged"]
_UNWRITTEN = "Nothing was written."


class Opting:
    """Which instances of one Headwater are served by a release."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._instances = Instances(settings.collect_path)

    def releases(self) -> Shown:
        """Return the installed releases with the instances that each one serves; a damaged one with its fault."""
        used: dict[str, list[str]] = {}
        for name, instance in sorted(self._instances.all().items()):
            if instance.release is not None:
                used.setdefault(instance.release, []).append(name)
        rows = [self._row(digest, used.get(digest, [])) for digest in digests(self._settings.releases_dir)]
        return {"releases": rows}

    def use(self, name: str, release: str) -> Shown:
        """Have an instance served by a release. An instance that is not configured yet is set up.

        All that serving it takes is read before anything is written, and verified. Raise `invalid_input` for a digest
        that is none, or the instance of a definition that was named on the command line; `not_found` where the release
        is not installed or has none of the connector; and what `released` has for one that cannot be used.
        """
        if not is_digest(release):
            message = "A release is named by the 64 hexadecimal digits that installing it told."
            raise refuse(
                "invalid_input", message, safe=_UNWRITTEN, field="release", command="headwater definitions list"
            )
        configuration, entry = self._entry(valid_name(name))
        served = self._served(entry, release)
        known = self._instances.all().get(name)
        disposition: Disposition = "unchanged"
        if known is None or known.release != release:
            is_new = known is None and configuration.find(entry.connector, entry.instance) is None
            disposition = "created" if is_new else "changed"
            self._instances.opt_in(name, release)
        return {
            "instance": name,
            "release": release,
            "disposition": disposition,
            "endpoint": served.endpoint,
            "profiles": [method.key for method in served.methods],
            "connections": self._connections(served),
        }

    def leave(self, name: str) -> Shown:
        """Have an instance served by its connector again, and say whether there is one.

        The rest of what is set up of it stays; where there is no rest, no connector and no connection, nothing is left
        of it. Raise `not_found` where there is no such instance.
        """
        _, entry = self._entry(valid_name(name), is_there=True)
        known = self._instances.all().get(name)
        is_served = known is not None and known.folder is not None
        is_served = is_served or Catalog(self._settings.connectors_dir).named(entry.connector) is not None
        told = {"instance": name, "release": None, "is_served": is_served}
        if known is None or known.release is None:
            return {**told, "disposition": "unchanged"}
        is_all = known == Instance(name, release=known.release)
        holds = bool(self._held(entry.instance_id))
        self._instances.opt_out(name, forget=is_all and not is_served and not holds)
        return {**told, "disposition": "changed"}

    def _entry(self, name: str, *, is_there: bool = False) -> tuple[Configuration, Entry]:
        """Return what is configured of an instance, or what would be. Raise where a release cannot serve it."""
        selection = target(name)
        connector, instance = selection.connector or "", selection.instance or ""
        configuration = configuration_of(self._settings)
        entry = configuration.find(connector, instance)
        if entry is not None and entry.definition is not None:
            message = "That is the instance of a definition that was named on the command line; take another name."
            raise refuse("invalid_input", message, safe=_UNWRITTEN, field="target")
        if entry is not None:
            return configuration, entry if is_there else admitted(entry)
        if is_there:
            raise refuse("not_found", "No instance of this name is set up.", command="headwater instances list")
        check_enabled(self._settings, connector)
        beside(configuration, [(connector, instance)])
        return configuration, unpinned(connector, instance)

    def _served(self, entry: Entry, release: str) -> Target:
        try:
            return Targets(self._settings).served(entry, released(self._settings, release, entry.connector))
        except HeadwaterError as error:
            code = "not_found" if error.code == "description_unavailable" else error.code
            step, command = error.next_action, error.command
            raise refuse(
                code, error.message, next_action=step, safe=_UNWRITTEN, command=command, **error.data
            ) from None

    def _connections(self, served: Target) -> list[Shown]:
        """Return the connections of an instance with how each stands under what serves it now."""
        now, held = clock.millis(), self._held(served.instance_id)
        states = [state_of(one, standing_of(one, served, now), now, enabled=served.enabled) for one in held]
        return [{"connection": one.reference, "state": state} for one, state in zip(held, states, strict=True)]

    def _held(self, instance_id: str) -> Sequence[Connection]:
        if not self._settings.database_path.exists():
            return []
        with looked_at(self._settings.database_path) as registry:
            return registry.held(os.geteuid(), instance_id)

    def _row(self, digest: str, used: list[str]) -> Shown:
        row: Shown = {"release": digest, "instances": used}
        try:
            with installed(self._settings.releases_dir, digest) as release:
                return {
                    **row,
                    "tag": release.index.tag,
                    "commit": release.index.commit,
                    "files": len(release.index.files),
                }
        except HeadwaterError as error:
            return {**row, "fault": {"code": error.code, "message": error.message}}
        except OSError:
            message = "It cannot be read, or others can change a folder that it lies in."
            return {**row, "fault": {"code": "description_unavailable", "message": message}}
