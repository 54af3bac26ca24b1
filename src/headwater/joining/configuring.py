"""Setting up and looking at what is configured: nothing is started, and no provider or keyring is asked."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater import clock
from headwater.errors import HeadwaterError, refuse
from headwater.joining.configured import configuration_of, declared_by, folder_of, shipped
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.configuration.model import Entry
    from headwater.configuration.selecting import Selection

Shown = dict[str, Any]


class Configuring:
    """The configuration of one Headwater."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def initialize(self) -> Shown:
        """Make the configuration, or the database that an existing one lacks; nothing that is there is touched.

        Raise `configuration_exists` where there is nothing to make, or the existing one cannot be read.
        """
        from headwater.configuration.creating import first
        from headwater.configuration.files import create_owned, make_folder

        path = self._settings.config_path
        if os.path.lexists(path):
            self._check_incomplete()
            self._make_database()
            return {"disposition": "state_initialized", **where(self._settings)}
        make_folder(path)
        self._make_database()  # before the configuration: whoever finds one finds what belongs to it
        create_owned(path, first(os.geteuid()))
        return {"disposition": "created", **where(self._settings)}

    def _check_incomplete(self) -> None:
        """Raise `configuration_exists` where nothing is missing beside a configuration that can be read."""
        if not self._settings.database_path.exists():
            with suppress(HeadwaterError):
                configuration_of(self._settings)
                return
        raise refuse("configuration_exists", safe="It was left as it is.", command="headwater setup check")

    def _make_database(self) -> None:
        from headwater.store.locks import private
        from headwater.store.sqlite.database import open_database

        if not self._settings.database_path.exists():
            private(self._settings.state_dir)
            open_database(self._settings.database_path).close()

    def migrate(self, *, apply: bool) -> Shown:
        """Move legacy entries to instances of connectors, or only say what would be moved.

        The file as it was is kept beside it (CLI-1020). Raise `revision_conflict` where it was changed meanwhile.
        """
        from headwater.configuration.files import create_owned, read_owned, replace_owned
        from headwater.configuration.migrating import plan, told

        path = self._settings.config_path
        planned = plan(read_owned(path), shipped)
        result: Shown = {
            "disposition": "unchanged" if planned.after == planned.before else "applied" if apply else "planned",
            "configuration": str(path),
            "format_before": planned.format_before,
            "format_after": planned.format_after,
            "entries": [told(item) for item in planned.items],
        }
        if result["disposition"] == "applied":
            backup = path.with_name(f"{path.name}.before-migrate-{clock.now():%Y%m%dT%H%M%SZ}")
            create_owned(backup, planned.before)
            replace_owned(path, planned.before, planned.after)
            result["backup_path"] = str(backup)
        return result

    def enable_checkpoints(self) -> Shown:
        """Confirm that the database opens from a checkpoint: each one is made so, and there is nothing to enable.

        Raise `lifecycle_conflict` while an owner runs, `metadata_unavailable` where there is no database (CLI-122 to
        CLI-129).
        """
        from headwater.link.owner import Place
        from headwater.store.locks import exclusive
        from headwater.store.sqlite.database import open_database

        settings = self._settings
        if not settings.database_path.exists():
            raise refuse("metadata_unavailable", "There is no database yet.", command="headwater setup init")
        try:
            with exclusive(Place.of(settings.state_dir).lock):
                open_database(settings.database_path).close()
        except HeadwaterError as error:
            if error.code != "run_active":
                raise
            message = "The owner of the state directory is running."
            raise refuse("lifecycle_conflict", message, next_action="stop_owner") from error
        change = {"change": "one-way", "newest_incompatible_release": "0.32.0"}
        return {"disposition": "already_enabled", "state_path": str(settings.state_dir), **change}

    def connectors(self) -> Shown:
        """Return the connectors that this build brings along, each with its ways to sign in and its instances."""
        from headwater.catalog.folders import bundled

        named: dict[str, list[str]] = {}
        for entry in configuration_of(self._settings, needed=False, defined=False).instances:
            if not entry.in_adapters:
                named.setdefault(entry.connector, []).append(entry.instance)
        rows = []
        for folder in sorted(bundled(), key=lambda folder: folder.name):
            profiles = [] if folder.integration is None else list(folder.integration.methods)
            instances = sorted(named.get(folder.name, ()))
            rows.append({"connector": folder.name, "profiles": profiles, "instances": instances})
        return {"connectors": rows}

    def instances(self) -> Shown:
        """Return what is configured, each instance by its connector and its name (CLI-256, CLI-257)."""
        configuration = configuration_of(self._settings, needed=False, defined=False)
        rows = [
            {
                "connector": entry.connector,
                "instance": entry.instance,
                "instance_id": entry.instance_id,
                "startup": entry.startup,
                "restart": entry.restart,
            }
            for entry in sorted(configuration.instances, key=lambda entry: (entry.connector, entry.instance))
        ]
        lone = sorted(entry.alias for entry in configuration.entries if entry not in configuration.instances)
        return {"instances": rows, **({"unmigrated": lone} if lone else {}), "source": "configuration"}

    def remove(self, name: str) -> Shown:
        """Forget an instance that was set up to be collected. What it collected stays, with its cursors.

        Raise `not_found` where it was not, `lifecycle_conflict` while it is connected, `run_active` while it runs.
        """
        from headwater.catalog.instances import Instances
        from headwater.connect.admission import admit_removal
        from headwater.store.locks import Locks
        from headwater.store.sqlite.connections import looked_at

        instances = Instances(self._settings.collect_path)
        instances.find(name)
        connector, _, instance = name.partition("/")
        configuration = configuration_of(self._settings, needed=False)
        entry = configuration.find(connector, instance)
        with Locks(self._settings.locks_dir).alone(name):
            if entry is not None:
                with looked_at(self._settings.database_path) as registry:
                    admit_removal(registry.held(configuration.owner_uid, entry.instance_id), name)
            instances.remove(name)
        stays = configuration_of(self._settings, needed=False).find(connector, instance) is not None
        return {"instance": name, "kept": ["records", "cursors"], "configured": stays}

    def describe(self, selection: Selection) -> Shown:
        """Return what is configured of one instance (CLI-284)."""
        from headwater.configuration.selecting import select

        entry = select(configuration_of(self._settings, needed=False), selection)
        selectors = {"adapter": entry.alias, "connector": entry.connector, "instance": entry.instance}
        return {**selectors, "configuration": self._summary(entry), "source": "configuration", "stale": False}

    def _summary(self, entry: Entry) -> Shown:
        told: Shown = {
            "instance_id": entry.instance_id,
            "startup": entry.startup,
            "restart": entry.restart,
            "enabled": entry.enabled,
            "endpoint": entry.endpoint,
            "profile": entry.profile,
            "description": entry.description or None,
            **(self._derived(entry) if entry.pins is None else _pinned(entry)),
        }
        return {name: value for name, value in told.items() if value is not None}

    def _derived(self, entry: Entry) -> Shown:
        from headwater.catalog.instances import Instances
        from headwater.configuration.revisions import derived

        collected = Instances(self._settings.collect_path).all().get(entry.name)
        folder = folder_of(self._settings, entry, collected)
        now = derived(entry, declared_by(self._settings, folder))
        told: Shown = {
            "configuration_revision": now.configuration_revision,
            "endpoint": now.endpoint,
            "profile": now.profile,
        }
        if collected is not None and collected.release is not None:
            told["release"] = collected.release
        if collected is not None:
            told["collect"] = {
                "folder": None if collected.folder is None else str(collected.folder),
                "streams": list(collected.streams),
                "options": dict(collected.options),
                "bindings": dict(collected.bindings),
                "is_scheduled": collected.schedule is not None,
            }
        return told


def where(settings: Settings) -> dict[str, str]:
    """Return the paths that were chosen, and the system."""
    system = f"{platform.system()} {platform.release()}"
    return {"config_path": str(settings.config_path), "state_path": str(settings.state_dir), "os": system}


def _pinned(entry: Entry) -> Shown:
    assert entry.pins is not None
    executable = entry.pins.executable
    return {
        "configuration_revision": entry.configuration_revision,
        "adapter_id": entry.pins.adapter_id,
        "protocol": entry.pins.protocol,
        "executable": {"path": str(executable.path), "sha256": executable.sha256, "args": list(executable.args)},
    }
