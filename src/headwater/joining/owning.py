"""What is asked of the owner of a state directory, and what is said where none answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater import clock
from headwater.errors import HeadwaterError
from headwater.joining.configuring import Configuring
from headwater.link.owner import Place, ask, stop
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.configuration.selecting import Selection

Shown = dict[str, Any]


class Owning:
    """The owner of one state directory, as its faces see it."""

    def __init__(self, settings: Settings, configuring: Configuring) -> None:
        self._place, self._configuring = Place.of(settings.state_dir), configuring

    def stop(self) -> Shown:
        """Ask the owner to end, and wait until it did."""
        return {"disposition": stop(self._place), "state_path": str(self._place.lock.parent)}

    def observe(self, selection: Selection) -> Shown:
        """Return how the owner sees an instance; `owner_unavailable` where none answers (CLI-259)."""
        described = self._configuring.describe(selection)
        try:
            return dict(ask(self._place, "status", selection=_written(described))["observation"])
        except HeadwaterError as error:
            if error.code not in ("unavailable", "outcome_unknown"):
                raise
        names = {name: described[name] for name in ("adapter", "connector", "instance")}
        revision = described["configuration"]["configuration_revision"]
        seen = {"state": "owner_unavailable", "observed_at_ms": clock.millis()}
        return {**names, "configuration_revision": revision, **seen}

    def stop_instance(self, selection: Selection, revision: str, host: str, child: str) -> Shown:
        """Stop exactly this incarnation of an instance's program, and keep it stopped."""
        told = ask(
            self._place,
            "stop",
            selection=_written(self._configuring.describe(selection)),
            expected_revision=revision,
            host_incarnation=host,
            child_incarnation=child,
        )
        return dict(told["observation"])


def _written(described: Shown) -> list[str | None]:
    """Return the selection of a described instance, as it crosses a socket."""
    return [described["connector"], described["instance"], None]
