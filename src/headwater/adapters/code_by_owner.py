"""Operations that an integration's code does, in the process that the owner keeps: the port `Asker`, from afar."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from headwater import clock, limits
from headwater.adapters.crossing import of_credential
from headwater.aside import aside
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

        await aside(begin)

    async def ask(self, described: Described, given: Mapping[str, Any], until: float, check: Callable[[], None]) -> Any:
        """See `Asker.ask`. Code that says something else than was described is not run.

        An owner that is gone before it answers leaves it open what came of it (CLI-928).
        """
        try:
            return (await self.run(described, given, until)).result()
        except Unfinished as failure:
            raise failure.meaning() from None

    async def run(self, described: Described, given: Mapping[str, Any], until: float) -> "Done":
        """Have the code do an operation, once. Raise `Unfinished` where it says that it did not."""
        members = {
            "operation": described.operation.id,
            "revision": described.revision,
            "given": _encode(given).decode(),
            "credential": of_credential(self.credential),
        }
        try:
            told = await aside(lambda: _put(self.place, "operate", self.instance_id, until, **members))
        except HeadwaterError as error:
            if error.code == "outcome_unknown":
                error.stage = "dispatch"
            raise
        if "failure" in told:
            raise Unfinished(told["failure"]["code"], told["failure"]["retry_after"])
        return Done(told.get("result"))


class Unfinished(Exception):
    """Code says, by a code of the integration contract, that it did not do what it was asked."""

    def __init__(self, code: str, retry_after: int | None) -> None:
        super().__init__(code)
        self.code, self._retry_after = code, retry_after

    def meaning(self) -> HeadwaterError:
        """Return what that means as a failure."""
        return failed(self.code, self._retry_after)


@dataclass(frozen=True)
class Done:
    """Code did what it was asked. `text` is what it says of that, None where that is too large to cross."""

    text: str | None

    def result(self) -> Any:
        """Return it, or raise why it cannot be told."""
        if self.text is None:
            raise lost(NoReply("too_large", sent=True))
        try:
            return decoded(self.text.encode())
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
