"""One question to whoever stands at the terminal: its answer is shown as it is typed."""

import os
import termios

from headwater.cli.hidden import controlling_terminal

_ANSWER_BYTES = 16


def answered(question: str) -> str | None:
    """Return what is typed at the controlling terminal, in small letters; None where there is no such terminal.

    What was typed before the question was seen is no answer to it. Raise `KeyboardInterrupt` for Ctrl-C.
    """
    try:
        with controlling_terminal() as descriptor:
            termios.tcflush(descriptor, termios.TCIFLUSH)
            os.write(descriptor, question.encode())
            said = os.read(descriptor, _ANSWER_BYTES)
            termios.tcflush(descriptor, termios.TCIFLUSH)  # the rest of a long line is no command for the shell behind
            return said.decode(errors="replace").strip().lower()
    except (OSError, termios.error):
        return None


def agreed(question: str) -> bool:
    """Whether somebody at the terminal says yes; nobody there is no yes."""
    return answered(f"{question} [y/N] ") in ("y", "yes")
