"""The common integration service: what every face calls to see, enable, refresh and disconnect accounts (spec/004).

A face shows what this answers and adds nothing to it; what is not declared is refused here, whatever a face shows.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater import clock, limits
from headwater.catalog.instances import Instances
from headwater.connect import looking
from headwater.errors import HeadwaterError, refuse
from headwater.joining.connecting import Connecting
from headwater.joining.control import cancel, live_runs
from headwater.joining.reaching import hooks_of, integrations_of
from headwater.joining.webhooks import Webhooks
from headwater.settings import Settings
from headwater.store.locks import Locks
from headwater.store.sqlite.connections import opened
from headwater.store.sqlite.owner_records import Disconnection, OwnerRecords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.adapters.registry import Integrations, Registered
    from headwater.configuration.selecting import Selection
    from headwater.connect.model import Target

Shown = dict[str, Any]


class Integrating:
    """The integrations of one Headwater."""

    def __init__(self, settings: Settings, connecting: Connecting) -> None:
        self._settings = settings
        self._connecting = connecting

    @cached_property
    def integrations(self) -> Integrations:
        """Every integration of this machine."""
        return integrations_of(self._settings)

    def catalog(self) -> Shown:
        """Return every integration with what it can do and how one signs in; and those that are left out, with why."""
        today = clock.now().date()
        rows = [_shown(one, one.warnings(today)) for _, one in sorted(self.integrations.all.items())]
        faults = [
            {"connector": one.connector, "pointer": fault.pointer, "message": fault.message}
            for one in self.integrations.left_out
            for fault in one.faults
        ]
        return {"integrations": rows, "left_out": faults}

    def named(self, key: str) -> Shown:
        """Return one integration by its key, as the catalog shows it."""
        for row in self.catalog()["integrations"]:
            if row["key"] == key:
                return dict(row)
        raise refuse("not_found", "There is no integration of this key.", command="headwater connectors integrations")

    def enable(self, connector: str, *, enabled: bool) -> Shown:
        """Let accounts be connected by an integration, or no more. Those that are connected stay."""
        registered = self.integrations.find(connector)
        Instances(self._settings.collect_path).enable(registered.integration.key, enabled=enabled)
        return {"connector": connector, "key": registered.integration.key, "enabled": enabled}

    def admit(self, connector: str, action: str) -> Registered:
        """Return the integration that declares an action, or raise `unsupported` (INT-135, INT-153, INT-157)."""
        registered = self.integrations.find(connector)
        if action not in registered.integration.actions:
            command = f"headwater connections revoke {connector}/NAME" if action == "disconnect" else ""
            message = f"This integration has no action to {action}."
            raise refuse("unsupported", message, safe="Nothing was changed.", command=command)
        return registered

    def refreshed(self, selection: Selection) -> str:
        """Return the instance whose manual sync an action starts: it is a collection run like any other (INT-154)."""
        target = self._connecting.target(selection)
        self.admit(target.connector, "refresh")
        return target.name

    async def configure(self, selection: Selection, settings: Sequence[str]) -> Shown:
        """Have an integration check `option=value` texts and apply them, all or none, and remember them then."""
        from headwater.catalog.folders import folder_at
        from headwater.connect.applying import applied
        from headwater.manifest.faults import refusal

        target = self._connecting.target(selection)
        folder = folder_at(self.admit(target.connector, "configure").path)
        instances = Instances(self._settings.collect_path)
        with Locks(self._settings.locks_dir).alone(target.name):
            instance = instances.find(target.name)
            if instance.release is not None:
                raise _served_by_release(target.name)
            used = await self._connecting.credential_for(target.name)
            if used is None:
                raise refuse("not_found", "The instance holds no connection.", next_action="create_connection")
            method, credential = target.method(used.connection.profile), used.credential
            assert method is not None, "a method that is not declared is admitted nowhere"
            placed = {name: value for name, value in instance.options.items() if name == "endpoint"}
            before = {name: value for name, value in instance.options.items() if name not in placed}
            hooks = hooks_of(self._settings, target)

            def keep(held: Mapping[str, Any]) -> None:
                if faults := folder.package.option_faults(held):
                    raise refusal("invalid_options", "The integration told settings that do not fit.", faults)
                instances.add(replace(instance, options={**held, **placed}))

            wanted = folder.checked_options(before, settings)
            if "endpoint" in wanted:
                raise refuse("invalid_options", "An instance's endpoint is no setting at its service.")
            held = await applied(lambda values: hooks.configure(method, credential, values), before, wanted, keep)
        return {**looking.selectors(target), "options": dict(held)}

    async def disconnect(self, selection: Selection) -> Shown:
        """Disconnect an instance's account. Doing it again says the same (INT-366)."""
        from headwater.connect.disconnecting import disconnect

        target = self._connecting.target(selection)
        self.admit(target.connector, "disconnect")
        records = OwnerRecords(self._settings.database_path, target.owner)
        async with AsyncExitStack() as stack:
            registry = stack.enter_context(opened(self._settings.database_path))
            parts = self._connecting.disconnecting(registry, selection)
            await self._alone(stack, target)
            done = await disconnect(registry, *parts)
        if done is not None:
            told = Disconnection(*done, clock.millis())
            records.disconnect(target.instance_id, target.connector, target.instance, told)
        await Webhooks(self._settings, self._connecting).forget(target)
        known = records.disconnection(target.instance_id)
        if known is None:
            raise refuse("not_found", "The instance holds no connection.", next_action="create_connection")
        shown = {"connection": known.connection, "revocation": known.revocation, "credential": "cleared"}
        return {**looking.selectors(target), **shown, "records": "kept", "inactive_since_ms": known.at_ms}

    async def _alone(self, stack: AsyncExitStack, target: Target) -> None:
        """End the instance's run and wait until it let go: nothing of it is written after this (INT-365)."""
        until = clock.monotonic() + limits.DISCONNECT_RUN_SECONDS
        while True:
            try:
                stack.enter_context(Locks(self._settings.locks_dir).alone(target.name))
                return
            except HeadwaterError as error:
                if error.code != "run_active" or clock.monotonic() >= until:
                    raise
            for run_id in live_runs(self._settings.live_dir, target.name):
                cancel(self._settings.live_dir, run_id)
            await asyncio.sleep(limits.LOCK_LOOK_SECONDS)


def _served_by_release(name: str) -> HeadwaterError:
    message = "A release serves this instance, and none of its connector's code is run for it."
    return refuse(
        "unsupported", message, safe="Nothing was changed.", command=f"headwater definitions use {name} --none"
    )


def _shown(one: Registered, warnings: tuple[str, ...]) -> Shown:
    integration = one.integration
    methods = [
        {
            "key": method.key,
            "label": method.label,
            "flow": method.flow,
            "fields": [
                {"name": field.name, "label": field.label, "type": field.type, "required": field.required}
                for field in method.fields
            ],
        }
        for method in integration.methods.values()
    ]
    return {
        "connector": one.connector,
        "key": integration.key,
        "version": integration.version,
        "display_name": integration.display_name,
        "description": integration.description,
        "provider": integration.provider,
        "origin": one.origin,
        "enabled": one.is_enabled,
        "capabilities": sorted(integration.capabilities),
        "methods": methods,
        "actions": sorted(integration.actions),
        "resource_concurrency": integration.resource_concurrency,
        "warnings": list(warnings),
    }
