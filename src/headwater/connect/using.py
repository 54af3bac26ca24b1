"""The door: the credential of an instance, for something that is read with it (CLI-450 to 460)."""

from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from headwater import clock
from headwater.connect.admission import admit_use
from headwater.connect.changes import Standing
from headwater.connect.envelope import Credential
from headwater.connect.model import Connection
from headwater.connect.ports import Registry
from headwater.connect.refusals import needs_reconnect
from headwater.connect.retention import erase_old
from headwater.connect.state import is_fresh, needs_another_credential
from headwater.connect.validating import Validating
from headwater.errors import HeadwaterError, refuse

Need = Literal["none", "early", "now"]
"""Whether the evidence of a connection is collected anew before a read: only to be safe, or because it must be."""


def need_of(connection: Connection, standing: Standing, now_ms: int, left_ms: int) -> Need:
    """Decide by what is left of the evidence's own span and of the read's time (CLI-452, CLI-465)."""
    if standing == "other_executable" or not is_fresh(connection, now_ms):
        return "now"
    evidence = connection.evidence
    left, span = evidence.valid_until_ms - now_ms, evidence.valid_until_ms - evidence.collected_at_ms
    return "early" if 2 * left < span and left < left_ms else "none"


@dataclass(frozen=True)
class Used:
    """A credential that was handed out, and the connection that it is of."""

    connection: Connection
    credential: Credential


@dataclass(frozen=True)
class Using:
    """Hands out the credential of one instance."""

    validating: Validating

    async def use(self, connection: Connection, seconds: float) -> Used:
        """Return the credential of a connection for a read that takes at most so long.

        Its evidence is collected anew once, where it lapsed or soon will; the caller revalidates nothing.
        """
        until_ms = clock.millis() + int(seconds * 1000)
        standing = self._admitted(connection)
        need = need_of(connection, standing, clock.millis(), until_ms - clock.millis())
        if need != "none":
            connection = await self._rechecked(connection, need)
        method = self.validating.target.method(connection.profile)
        assert method is not None, "a method that is not declared is admitted nowhere"
        connection, held = await self.validating.current(method, connection)
        if not is_fresh(connection, clock.millis()):
            message = "What was last checked of the connection lapsed before it could be used."
            raise refuse("not_granted", message, next_action="revalidate_connection", safe="Nothing was read with it.")
        material = self.validating.material
        await erase_old(material.registry, material.custody, connection.owner)
        return Used(connection, held.credential)

    def _admitted(self, connection: Connection) -> Standing:
        standing = admit_use(connection, self.validating.target, clock.millis())
        if needs_another_credential(connection, clock.millis()):
            raise needs_reconnect()
        return standing

    async def _rechecked(self, connection: Connection, need: Need) -> Connection:
        """Check once; evidence that still counts serves on where that fails by anything but a refusal (CLI-457)."""
        try:
            return await self.validating.recheck(connection)
        except HeadwaterError as error:
            if need == "now" or _is_refusal(error) or not is_fresh(connection, clock.millis()):
                raise
            return self.validating.again(connection)


def _is_refusal(error: HeadwaterError) -> bool:
    """Whether a check failed because of the credential itself, or found the connection cut off."""
    is_refused = error.data.get("service_code") == "unauthorized"
    return is_refused or error.code in ("identity_mismatch", "not_granted", "revoked")


def refused(registry: Registry, connection: Connection) -> None:
    """Cut off a connection whose credential the provider refused in use, unless it has another one by now."""
    while (now := registry.find(connection.owner, connection.reference)) is not None:
        if now.generation != connection.generation or now.lifecycle != "live":
            return
        checks = {**now.evidence.checks, "credential_valid": "invalid"}
        after = replace(now, lifecycle="stale", evidence=replace(now.evidence, checks=checks))
        if registry.publish(now, after, clock.millis()):
            return
