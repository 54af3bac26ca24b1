"""The tree of failure.

    HeadwaterError             anything that Headwater refuses or reports, with a stable code
    ├── UsageError             exit 2    change what you typed, or the file you named
    ├── OperationalError       exit 1    the command was right; something else was not
    └── Interruption      exit 130  you stopped it

The three families answer one question: what does the caller do next? Each code belongs to one
family, stands once in `codes.CODES`, and carries the stage that it is raised at, the next action (one
closed vocabulary for the command line, recovery hints and integrations) and a sentence for people.
`refuse` is the only way to make one.

A message never repeats what was typed, what a file held or what a provider said: those may be
secrets. Names that a manifest or a configuration declares may stand in `data`.
"""

from collections.abc import Mapping
from errno import EAGAIN, EMFILE, ENFILE, ENOMEM
from typing import Any, Final

from headwater.codes import ALWAYS, CODES, INTEGRATED, WRITTEN, Kind, NextAction, Stage

EXITS: Final[Mapping[Kind, int]] = {"usage": 2, "operational": 1, "interrupted": 130}


class HeadwaterError(Exception):
    """Something Headwater refuses or reports.

    `message` says what happened, `safe` what is unharmed, `command` the one next command to type. `data` holds
    members that the code's row names, and no others: what a code may not tell cannot be raised with it.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        stage: Stage | None = None,
        next_action: NextAction | None = None,
        safe: str = "",
        command: str = "",
        **data: Any,
    ) -> None:
        row = CODES[code]
        if unknown := data.keys() - ALWAYS - INTEGRATED - WRITTEN - set(row.members.split()):
            raise TypeError(f"a refusal of {code} has no member {', '.join(sorted(unknown))}")
        self.code = code
        self.kind = row.kind
        self.stage = stage or row.stage
        self.next_action = next_action or row.next_action
        self.message = message or row.message
        self.safe = safe
        self.command = command
        self.data = data
        super().__init__(self.message)

    @property
    def exit_status(self) -> int:
        """The process exit status of this family."""
        return EXITS[self.kind]

    @property
    def is_retryable(self) -> bool:
        """Whether the same may be asked again later, as it is (INT-281)."""
        return bool(self.data.get("retryable", CODES[self.code].passes))


class UsageError(HeadwaterError):
    """Change what was typed, or the file that was named."""


class OperationalError(HeadwaterError):
    """The command was admitted, and did not succeed."""


class Interruption(HeadwaterError):
    """The person stopped it."""


_EXHAUSTED: Final = frozenset({EMFILE, ENFILE, EAGAIN, ENOMEM})


def is_exhausted(error: Exception) -> bool:
    """Whether the machine ran out of descriptors, processes or memory: nothing is wrong with what was asked."""
    if isinstance(error, RuntimeError):
        return "can't start new thread" in str(error)
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


_FAMILIES: Final[Mapping[Kind, type[HeadwaterError]]] = {
    "usage": UsageError,
    "operational": OperationalError,
    "interrupted": Interruption,
}


def refuse(
    code: str,
    message: str | None = None,
    *,
    stage: Stage | None = None,
    next_action: NextAction | None = None,
    safe: str = "",
    command: str = "",
    **data: Any,
) -> HeadwaterError:
    """Make the failure that a code stands for, ready to raise.

    `stage` and `next_action` are those of the code's row, where they are not given.
    """
    family = _FAMILIES[CODES[code].kind]
    return family(code, message, stage=stage, next_action=next_action, safe=safe, command=command, **data)
