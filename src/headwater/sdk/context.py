"""What a hook is told and given, and nothing of the host beyond that (INT-491)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.sdk.credentials import Envelope
    from headwater.sdk.http import Http
    from headwater.sdk.logging import Log


@dataclass(frozen=True)
class Provider:
    """The provider as the host knows it. `settings` is the operator's protected configuration of this application."""

    name: str
    endpoint: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Context:
    """One call of one hook, for one owner.

    `credential` is that of the connection that the call is for, where it has one. `deadline` is when the host stops
    waiting. `throttle` counts a further attempt that this call makes, and raises `Refused` where there were too many.
    """

    owner: str
    acting_user: str
    team: str
    provider: Provider
    credential: "Envelope | None" = field(repr=False)
    deadline: datetime
    throttle: Callable[[], None]
    clock: Callable[[], datetime]
    http: "Http"
    log: "Log"
