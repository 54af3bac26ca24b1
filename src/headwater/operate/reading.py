"""One read: checked, noted, asked, and its answer held to what the operation declares."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater import clock, limits
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.schemas import compile_schema
from headwater.operate.answering import admitted
from headwater.operate.description import Described
from headwater.operate.documents import depth_of
from headwater.operate.planning import unfit
from headwater.operate.ports import Asker, Journal

_SPEAKABLE: Final = re.compile(r"[A-Za-z0-9_.\[\]-]{1,64}")
_TOLD: Final = 8  # members that a refusal names at most


@dataclass(frozen=True)
class Reading:
    """Reads with one connection of one instance. `until` is the deadline, by the monotonic clock.

    `check` raises where what the read was admitted by is not so any more; it is called as late as can be.
    """

    asker: Asker
    journal: Journal
    connection: str
    until: float
    check: Callable[[], None]

    async def read(self, described: Described, given: Mapping[str, Any]) -> dict[str, Any]:
        """Ask once, for what was checked, and return `{request_id, result}`. Raise what the answer means, or its lack.

        It is in the journal before anything leaves, and so is what came of it.
        """
        await self.asker.ready(self.until)
        self.check()
        if self.until <= clock.monotonic():
            raise timed_out()
        operation = described.operation
        request_id = self.journal.dispatched(self.connection, operation.id, described.revision, operation.effect)
        outcome = "outcome_unknown"
        try:
            result = admitted(described, await self.asker.ask(described, given, self.until, self.check))
            outcome = "succeeded"
        except HeadwaterError as error:
            outcome = error.code
            error.data["request_id"] = request_id
            raise
        finally:
            self.journal.answered(request_id, outcome)
        return {"request_id": request_id, "result": result}


def check_input(described: Described, given: Any) -> None:
    """Raise `invalid_input` where an operation does not take what it is given (CLI-570)."""
    check_given(described.input_schema, given)


def check_given(schema: Mapping[str, Any], given: Any) -> None:
    """Raise `invalid_input` where an input is not of a schema, with the names of its members that do not fit."""
    if depth_of(given, limits.INPUT_LEVELS + 1) > limits.INPUT_LEVELS:
        raise unfit()
    validator = compile_schema(schema)
    if not validator.is_valid(given):
        wrong = {error.instance_path[0] for error in validator.iter_errors(given) if error.instance_path}
        raise unfit(_why(schema, given, wrong))


def _why(schema: Mapping[str, Any], given: Any, wrong: Collection[Any]) -> str:
    """Say which members are missing or do not fit, by the names that the operation declares and no others."""
    declared = [name for name in schema.get("properties", {}) if _SPEAKABLE.fullmatch(name)]
    required = schema.get("required", ())
    missing = [name for name in declared if name in required and isinstance(given, dict) and name not in given]
    told = [f"{name} is missing" for name in missing]
    told += [f"{name} does not fit" for name in declared if name in wrong]
    return f": {', '.join(told[:_TOLD])}" if told else ""


def timed_out() -> HeadwaterError:
    """Say that the time was over before anything was sent."""
    return refuse("timeout", "The time was over before the service was asked.", safe="Nothing was sent.")
