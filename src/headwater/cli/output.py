"""What a person or a program gets to see. stdout carries the result and nothing else; the rest is stderr."""

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from headwater import clock
from headwater.cli.shapes import fits
from headwater.codes import NextAction
from headwater.errors import HeadwaterError

_PRESENTATION: Final = {"cli_parse": 2, "cli_input": 2, "cli_source": 2, "cli_dynamic_input": 2, "cli_internal": 1}
# A number stays the number that it was, whatever its digits.
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode

_BEYOND_ASCII: Final = re.compile(r"[^\n -~]")

# What a person does next, where the failure names no command of its own (CLI-009).
_NEXT: Final[Mapping[NextAction, str]] = {
    "check_configuration": "headwater setup check",
    "choose_clock_source": "Choose other clock sources in the configuration.",
    "create_connection": "headwater connections connect <connector>/<instance>",
    "refresh_description": "headwater instances describe <connector>/<instance>",
    "repair_connection": "headwater connections reconnect <connector>/<instance>",
    "request_permission": "Ask whoever may permit it.",
    "retry_explicitly": "Try again.",
    "retry_status": "Look how it stands, then try again.",
    "revalidate_connection": "headwater connections revalidate <connector>/<instance>",
    "revoke_connection": "headwater connections revoke <connector>/<instance>",
    "select_protected_source": "Name one way to enter the credential: a terminal, a file or a pipe.",
    "stop_owner": "headwater setup owner-stop",
    "unlock_keyring": "Unlock the keyring, then try again.",
    "upgrade": "Install the newest Headwater.",
}


class Unwritten(Exception):
    """The result could not be written: whoever reads it is gone, or the disk is full."""


class Misshapen(Exception):
    """A result is not what the command declares."""


class GivenTwice(click.UsageError):
    """There are two values for one option."""


class NoDocument(click.UsageError):
    """What an operation was to be given is not one JSON value."""


class Output:
    """Prints results and failures, as tables and sentences or as one JSON object (CLI-001, CLI-002)."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._deprecations: list[Mapping[str, Any]] = []
        self._unsaid: list[str] = []

    @property
    def is_json(self) -> bool:
        """Whether a program reads this."""
        return self.mode == "json"

    def result(self, value: Any, human: Callable[[], Iterable[str]], form: str = "") -> None:
        """Print a result: the value in the envelope, or the lines that `human` makes of it.

        A value that is not of the command's declared shape reaches nobody (CLI-033); `form` names the option that gives
        the result another one.
        """
        context = click.get_current_context(silent=True)
        if context is not None and not fits(f"{context.command_path.partition(' ')[2]} {form}".rstrip(), value):
            raise Misshapen
        if self.is_json:
            self.write(self._envelope({"ok": True, "result": value}))
        else:
            self.write("".join(f"{line}\n" for line in human()).encode(errors="replace"))

    def write(self, content: bytes) -> None:
        """Write bytes to stdout. Raise `Unwritten` where they do not get there."""
        if self._unsaid:
            self._tell("")
        if sys.stdout is None:
            raise Unwritten
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        except OSError as error:
            raise Unwritten from error

    def lines(self, values: Iterable[Any]) -> None:
        """Print values as JSON, one a line, for people and programs alike. Raise `Unwritten`."""
        lines = self.encoded(values)
        self.write(lines if self.is_json else _shown(lines.decode()).encode())

    def encoded(self, values: Iterable[Any]) -> bytes:
        """Return values as JSON, one a line."""
        return b"".join(_encode(value) + b"\n" for value in values)

    def indented(self, value: Any) -> list[str]:
        """Lay out what a service said, as JSON that is indented (CLI-044)."""
        return _shown(msgspec.json.format(_encode(value), indent=2).decode()).split("\n")

    def note(self, text: str) -> None:
        """Tell a person something on the way; a program is not bothered with it (CLI-010)."""
        if not self.is_json:
            self._tell(f"{text}\n")

    def deprecate(self, sentence: str, entry: Mapping[str, Any]) -> None:
        """Say once that an old word was used: in a line before anything else, or in the envelope (CLI-013).

        Help, which prints itself, says nothing of it (CLI-028).
        """
        self._deprecations.append(entry)
        self._unsaid.append(sentence)

    def failure(self, error: HeadwaterError) -> int:
        """Print a failure and return its exit status."""
        if self.is_json:
            self._tell(self._envelope({"ok": False, "error": self.error(error)}).decode())
        else:
            lines = [
                f"headwater: {plain(error.message)}",
                *(f"  {plain(x)}" for x in error.data.get("explanation", ())),
            ]
            lines += [f"  {name}: {plain(error.data[name])}" for name in ("file", "feature") if name in error.data]
            lines += [f"  {error.safe}"] if error.safe else []
            known = error.data.get("mutation", {}).get("classification")
            again = known not in ("applied", "unknown")  # what may have been done is not tried again
            lines += [f"  What is known of it: {known}."] if known else []
            command = error.command or (_NEXT.get(error.next_action, "") if again else "")
            lines += [f"  Next: {typed(command)}"] if command else []
            self._tell("".join(f"{line}\n" for line in lines))
        return error.exit_status

    def error(self, error: HeadwaterError) -> dict[str, Any]:
        """Return a failure as it stands in the envelope."""
        data: dict[str, Any] = {"kind": error.kind, "code": error.code, "stage": error.stage}
        data["next_action"] = error.next_action
        sentences = {"message": error.message, "safe": error.safe, "command": error.command}
        data.update({name: text for name, text in sentences.items() if text})
        again = {"retryable": error.is_retryable, "request_id": clock.identifier("req")}
        return {"code": "failure", "data": {**data, **again, **error.data}}

    def misuse(self, error: click.ClickException) -> int:
        """Print a refusal of the command line itself, without repeating what was typed (CLI-004, CLI-011)."""
        code = _presentation(error)
        if self.is_json:
            self._refuse(code, {})
        else:
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "headwater"
            self._tell(f"headwater: {_misuse(error)}\n  Next: {typed(path)} --help\n")
        return _PRESENTATION[code]

    def internal(self, note: Path | None) -> int:
        """Print that something went wrong inside, and nothing of what; a person is told where it was noted."""
        if self.is_json:
            self._refuse("cli_internal", {})
        else:
            self._tell("headwater: Something went wrong inside Headwater. What was stored is whole.\n")
            if note is not None:
                self._tell(f"  Where in Headwater, and nothing of yours, is noted in {plain(note)}\n")
        return _PRESENTATION["cli_internal"]

    def _refuse(self, code: str, data: Mapping[str, Any]) -> None:
        self._tell(self._envelope({"ok": False, "error": {"code": code, "data": data}}).decode())

    def _tell(self, text: str) -> None:
        """Write to stderr, as UTF-8 whatever the locale; where there is none, nobody is told."""
        if not self.is_json:
            text = "".join(f"deprecated: {sentence}\n" for sentence in self._unsaid) + text
        self._unsaid.clear()
        if sys.stderr is None:
            return
        with suppress(OSError):
            sys.stderr.flush()
            sys.stderr.buffer.write(text.encode(errors="replace"))
            sys.stderr.buffer.flush()

    def _envelope(self, members: dict[str, Any]) -> bytes:
        if self._deprecations:
            members["deprecations"] = self._deprecations
        return _encode(members) + b"\n"


def _presentation(error: click.ClickException) -> str:
    if isinstance(error, click.FileError):
        return "cli_source"
    if isinstance(error, NoDocument):
        return "cli_dynamic_input"
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        return "cli_input"
    return "cli_parse"


def _misuse(error: click.ClickException) -> str:
    match error:
        case click.MissingParameter():
            name = error.param.human_readable_name if error.param else "an argument"
            return f"{name} is missing."
        case NoDocument():
            return "The input is not one JSON value."
        case GivenTwice():
            return "An option is given twice."
        case click.NoSuchOption():
            return "There is no such option."
        case click.BadParameter():
            name = error.param.human_readable_name if error.param else str(error.param_hint or "an argument")
            return f"The value of {name} does not fit."
        case click.FileError():
            return "A source that was named cannot be read."
        case click.exceptions.NoSuchCommand():
            return "There is no such command."
    return "The command line does not fit."


def typed(command: str) -> str:
    """Return a command as it has to be typed here: through the checkout's launcher where nothing is installed."""
    import shutil

    return command if shutil.which("headwater") else command.replace("headwater", "./headwater", 1)


def plain(value: object) -> str:
    """Return text without control characters, so that no data can drive a terminal."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "\ufffd" for c in text)


def _shown(document: str) -> str:
    """Return JSON that says the same and cannot drive a terminal: what is not to be seen stands as its escape."""
    return _BEYOND_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], document)


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, empty: str) -> list[str]:
    """Lay rows out under headings; numbers stand to the right. `columns` maps members to headings."""
    if not rows:
        return [empty]
    numeric = {name for name in columns if all(isinstance(row.get(name), int | None) for row in rows)}
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    heads = list(columns.values())
    widths = [max(_width(text) for text in column) for column in zip(heads, *cells, strict=True)]
    lines = []
    for row in [heads, *cells]:
        parts = [
            _pad(text, width, right=name in numeric) for text, width, name in zip(row, widths, columns, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def pairs(values: Mapping[str, Any]) -> list[str]:
    """Lay out single values as `name: value` lines, without the empty ones."""
    return [f"{name}: {_cell(value)}" for name, value in values.items() if value is not None]


def clip(value: object, width: int) -> str:
    """Cut text to a width in columns."""
    text = plain(value)
    if _width(text) <= width:
        return text
    kept = ""
    for character in text:
        if _width(kept + character) >= width:
            break
        kept += character
    return kept + "…"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else plain(value)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space
