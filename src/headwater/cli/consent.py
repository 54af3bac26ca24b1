"""Where a person is shown what a provider wants of them: the controlling terminal, or else one line of stderr."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from headwater.cli.hidden import Hidden
from headwater.cli.output import plain
from headwater.connect.ports import Challenge
from headwater.secret import Secret


class AtTerminal:
    """Fills `Person` for whoever typed the command."""

    def show(self, challenge: Challenge) -> None:
        """See `Person.show`."""
        if challenge.kind == "device":
            _tell(f"headwater: device-code {plain(challenge.user_code)} {plain(challenge.url)}")
        else:
            _tell(f"headwater: consent-url {plain(challenge.url)}")

    def answer(self, challenge: Challenge) -> Mapping[str, Secret]:
        """See `Person.answer`."""
        with Hidden.opened() as terminal:
            if challenge.target:
                terminal.say(f"A code was sent to {plain(challenge.target)}.")
            return {field.name: terminal.ask(field.label) for field in challenge.fields}


def _tell(line: str) -> None:
    with suppress(OSError):
        descriptor = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "w") as terminal:
            terminal.write(f"{line}\n")
        return
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
