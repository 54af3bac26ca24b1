"""How a connector's code ends a run, other than by returning."""

from headwater.wire.messages import RecoveryAction


class Fail(Exception):
    """The run cannot go on. The owner reads `message`; `hint` says what would help."""

    def __init__(
        self, message: str, *, retryable: bool = True, code: str | None = None, hint: RecoveryAction | None = None
    ) -> None:
        self.message = message
        self.retryable = retryable
        self.code = code
        self.hint = hint
        super().__init__(message)


class Declined(Fail):
    """The owner cancelled the question, or nobody answered in time."""


class Incomplete(Exception):
    """One stream could not be collected to its end, and fails alone; the message says why, for the owner to read."""


class Misuse(RuntimeError):
    """The call would put something on the wire that the profile forbids; nothing was written."""


class Cancelled(BaseException):
    """The host asked the process to stop."""
