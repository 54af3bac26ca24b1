"""Operations that an integration's code does, in the process that the owner keeps: the port `Asker`, from afar."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from headwater import clock, limits
from headwater.adapters.crossing import of_credential
from headwater.connect.envelope import Credential
from headwater.errors import HeadwaterError, refuse
from headwater.link.owner import Place, Want, ask_for
from headwater.operate.answering import failed, lost, strange
from headwater.operate.description import Described
from headwater.operate.documents import Undecodable, decoded
from headwater.operate.ports import NoReply
from headwater.operate.reading import timed_out

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True)
class CodeByOwner:
    """Asks the owner to run the code of one instance. `begin` has an owner running."""

    place: Place
    instance_id: str
    begin: Callable[[], None]
    credential: Credential

    async def ready(self, until: float) -> None:
        """See `Asker.ready`: the owner runs, and the instance's program."""

        def begin() -> None:
            self.begin()
            prepare(self.place, self.instance_id, until, resumes=True)

        await asyncio.to_thread(begin)

    async def ask(self, described: Described, given: Mapping[str, Any], until: float, check: Callable[[], None]) -> Any:
        """See `Asker.ask`. Code that says something else than was described is not run.

        An owner that is gone before it answers leaves it open what came of it (CLI-928).
        """
        members = {
            "operation": described.operation.id,
            "revision": described.revision,
            "given": _encode(given).decode(),
            "credential": of_credential(self.credential),
        }
        try:
            told = await asyncio.to_thread(lambda: _put(self.place, "operate", self.instance_id, until, **members))
        except HeadwaterError as error:
            if error.code == "outcome_unknown":
                error.stage = "dispatch"
            raise
        if "failure" in told:
            raise failed(told["failure"]["code"], told["failure"]["retry_after"])
        if "too_large" in told:
            raise lost(NoReply("too_large", sent=True))
        try:
            return decoded(told["result"].encode())
        except Undecodable:
            raise strange() from None


def prepare(place: Place, instance_id: str, until: float, *, resumes: bool) -> None:
    """Have a running owner start an instance's program, and keep what it says. Nothing is sent to anybody.

    An instance that was stopped is `description_unavailable`, unless this `resumes` it.
    """
    try:
        _put(place, "describe", instance_id, until, resumes=resumes)
    except HeadwaterError as error:
        if error.code != "outcome_unknown":
            raise
        message = "The owner ended before the instance's program was ready."
        raise refuse("unavailable", message, stage="readiness", safe="Nothing was sent.") from None


def _put(place: Place, want: Want, instance_id: str, until: float, **members: Any) -> dict[str, Any]:
    seconds = until - clock.monotonic()
    if seconds <= 0:
        raise timed_out()
    question = {"instance_id": instance_id, "within": seconds, "resumes": True, **members}
    return ask_for(place, want, seconds + limits.OWNER_MARGIN_SECONDS, 0, limits.LINK_RESULT_BYTES, **question)[0]
