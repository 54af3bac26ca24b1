"""The tree of failure.

    HeadwaterError             anything that Headwater refuses or reports, with a stable code
    ├── UsageError             exit 2    change what you typed, or the file you named
    ├── OperationalError       exit 1    the command was right; something else was not
    └── Interruption      exit 130  you stopped it

The three families answer one question: what does the caller do next? Each code belongs to one
family, stands once in `CODES`, and carries the stage that it is raised at, the next action (one
closed vocabulary for the command line, recovery hints and integrations) and a sentence for people.
`refuse` is the only way to make one.

A message never repeats what was typed, what a file held or what a provider said: those may be
secrets. Names that a manifest or a configuration declares may stand in `data`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from errno import EAGAIN, EMFILE, ENFILE, ENOMEM
from typing import Any, Final


@dataclass(frozen=True)
class Code:
    """One row of the table of failures."""

    kind: str
    stage: str
    next_action: str
    message: str


USAGE: Final = "usage"
OPERATIONAL: Final = "operational"
INTERRUPTED: Final = "interrupted"

CODES: Final[Mapping[str, Code]] = {
    "invalid_input": Code(USAGE, "arguments", "none", "An argument or document does not fit."),
    "invalid_configuration": Code(USAGE, "configuration", "check_configuration", "The configuration cannot be used."),
    "invalid_manifest": Code(
        USAGE, "admission", "check_configuration", "The manifest is refused; nothing was started."
    ),
    "invalid_scope": Code(USAGE, "admission", "none", "The scope is refused; nothing was started."),
    "invalid_options": Code(USAGE, "admission", "check_configuration", "The connector's options do not fit."),
    "invalid_schedule": Code(USAGE, "admission", "none", "The schedule does not fit."),
    "binding_unavailable": Code(
        OPERATIONAL, "admission", "check_configuration", "The connector needs something this host does not offer."
    ),
    "connector_unavailable": Code(
        OPERATIONAL, "launch", "check_configuration", "The connector's program could not be started."
    ),
    "connector_changed": Code(
        OPERATIONAL, "admission", "check_configuration", "The connector's files are not those that were added."
    ),
    "consent_needed": Code(OPERATIONAL, "admission", "none", "The connector asks for more than before."),
    "install_failed": Code(
        OPERATIONAL, "admission", "retry_explicitly", "The connector's packages could not be installed."
    ),
    "run_failed": Code(OPERATIONAL, "collection", "retry_explicitly", "The run failed."),
    "run_active": Code(OPERATIONAL, "admission", "retry_status", "Another run of this instance is active."),
    "run_superseded": Code(OPERATIONAL, "admission", "none", "The run cannot be undone any more."),
    "address_in_use": Code(OPERATIONAL, "launch", "check_configuration", "The port cannot be listened on."),
    "not_found": Code(OPERATIONAL, "admission", "check_configuration", "There is no such thing here."),
    "already_exists": Code(OPERATIONAL, "admission", "none", "That already exists; it was left as it is."),
    "not_conforming": Code(OPERATIONAL, "observation", "none", "The connector does not conform yet."),
    "metadata_unavailable": Code(OPERATIONAL, "observation", "retry_status", "The database cannot be used."),
    "metadata_schema_newer": Code(OPERATIONAL, "observation", "upgrade", "A newer Headwater wrote this database."),
    "storage_failed": Code(OPERATIONAL, "publication", "retry_explicitly", "The database could not be written."),
    "machine_exhausted": Code(
        OPERATIONAL, "launch", "retry_status", "The machine has no files, processes or memory left for this."
    ),
    "interrupted": Code(INTERRUPTED, "admission", "retry_status", "Interrupted."),
}

EXITS: Final[Mapping[str, int]] = {USAGE: 2, OPERATIONAL: 1, INTERRUPTED: 130}


class HeadwaterError(Exception):
    """Something Headwater refuses or reports.

    `message` says what happened, `safe` what is unharmed, `command` the one next command to type.
    """

    def __init__(
        self, code: str, message: str | None = None, *, safe: str = "", command: str = "", **data: Any
    ) -> None:
        row = CODES[code]
        self.code = code
        self.kind = row.kind
        self.stage = row.stage
        self.next_action = row.next_action
        self.message = message or row.message
        self.safe = safe
        self.command = command
        self.data = data
        super().__init__(self.message)

    @property
    def exit_status(self) -> int:
        """The process exit status of this family."""
        return EXITS[self.kind]


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


_FAMILIES: Final[Mapping[str, type[HeadwaterError]]] = {
    USAGE: UsageError,
    OPERATIONAL: OperationalError,
    INTERRUPTED: Interruption,
}


def refuse(code: str, message: str | None = None, *, safe: str = "", command: str = "", **data: Any) -> HeadwaterError:
    """Make the failure that a code stands for, ready to raise."""
    return _FAMILIES[CODES[code].kind](code, message, safe=safe, command=command, **data)
