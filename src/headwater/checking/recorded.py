"""A service that is only recorded: what it answers, or how it fails, told to the hooks in place of a real one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from headwater import limits
from headwater.errors import refuse
from headwater.outbound.client import Answer, Bounds, Client, Reach, Unanswered

ENDPOINT: Final = "https://recorded.invalid"


class Entered(msgspec.Struct, forbid_unknown_fields=True):
    """What a person would enter by one method: its fields, and the answer to a challenge."""

    fields: dict[str, str] = {}
    answer: dict[str, str] = {}


class Recording(msgspec.Struct, forbid_unknown_fields=True):
    """`fixtures/provider.json`: what is entered, by method, and the bodies answered, by `GET /path?query`."""

    methods: dict[str, Entered] = {}
    answers: dict[str, msgspec.Raw] = {}

    @property
    def secrets(self) -> set[str]:
        """Everything that is entered and long enough to be looked for."""
        values = (value for one in self.methods.values() for value in (*one.fields.values(), *one.answer.values()))
        return {value for value in values if len(value) >= _SHORTEST}


_SHORTEST: Final = 6


def recording(folder: Path) -> Recording | None:
    """Read the recording of a folder; None where there is none. Raise `invalid_input` where it does not fit."""
    try:
        text = (folder / "fixtures" / "provider.json").read_bytes()[: limits.DOCUMENT_BYTES]
        return msgspec.json.decode(text, type=Recording)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError):
        raise refuse("invalid_input", "fixtures/provider.json does not have its form.") from None


@dataclass(frozen=True)
class Fault:
    """How a service fails: the status and the body of everything that it answers."""

    status: int
    body: bytes


class Recorded(Client):
    """Answers from a recording, or with one fault; notes the hosts that were asked for and are not declared."""

    def __init__(self, known: Recording, hosts: frozenset[str]) -> None:
        super().__init__(Reach())
        self._known, self._hosts = known, hosts
        self.fault: Fault | None = None
        self.strays: list[str] = []

    async def send(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes, bounds: Bounds | None = None
    ) -> Answer:
        """Answer a request; nothing leaves this process."""
        parts = urlsplit(url)
        if not url.startswith(f"{ENDPOINT}/") and self._hosts and parts.hostname not in self._hosts:
            self.strays.append(parts.hostname or "")
            raise Unanswered("provider_protocol_error", sent=False)
        if self.fault is not None:
            return Answer(self.fault.status, self.fault.body)
        place = f"{verb} {parts.path}" + (f"?{parts.query}" if parts.query else "")
        if place not in self._known.answers:
            return Answer(404, b"{}")
        return Answer(200, bytes(self._known.answers[place]))
