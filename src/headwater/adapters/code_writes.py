"""Writes that an integration's code does, in the process that the owner keeps: the port `Changer`, from afar.

Code says what came of a write by a code of the integration contract. Only those that say that the service would not do
it are a refusal; whatever else happens after it was asked leaves it open whether it was done (INT-389).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.adapters.code_by_owner import CodeByOwner, Unfinished
from headwater.errors import HeadwaterError
from headwater.operate.answering import admitted
from headwater.operate.description import Described
from headwater.operate.writes.model import Cause, Outcome
from headwater.operate.writes.outcome import unknown

_REFUSALS: Final = frozenset({"invalid_fields", "credential_invalid", "challenge_failed", "insufficient_scope"})
_BEFORE: Final = frozenset({"admission", "launch", "readiness", "configuration", "observation"})


@dataclass(frozen=True)
class WritesByOwner:
    """Has the owner run the code of one instance. Code declares no guard: what it has to look at, it looks at."""

    code: CodeByOwner

    async def ready(self, until: float) -> None:
        """See `Changer.ready`."""
        await self.code.ready(until)

    async def preflight(self, described: Described, given: Mapping[str, Any], until: float) -> None:
        """See `Changer.preflight`: there is nothing to look at."""

    async def commit(self, described: Described, given: Mapping[str, Any], until: float) -> Outcome:
        """See `Changer.commit`."""
        try:
            told = await self.code.run(described, given, until)
        except HeadwaterError as error:
            if error.stage in _BEFORE and error.code != "outcome_unknown":
                return Outcome("not_attempted", failure=error, cause=Cause(error.code, "dispatch"))
            return unknown(error.code, "response")
        except Unfinished as failure:
            if failure.code in _REFUSALS:
                return Outcome("refused", failure=failure.meaning(), cause=Cause(failure.code, "response"))
            return unknown(failure.code, "response")
        try:
            return Outcome("applied", admitted(described, told.result()))
        except HeadwaterError as error:
            return Outcome("applied", failure=error, cause=Cause("upstream_protocol", "response"))
