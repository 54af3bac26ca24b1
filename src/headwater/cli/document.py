"""What an operation is given: one JSON document, from an argument, a file or stdin, read once and bounded."""

from __future__ import annotations

import os
import sys
from typing import Any

from headwater import limits
from headwater.cli.output import NoDocument
from headwater.errors import HeadwaterError, refuse


def document(text: str | None, path: str | None, *, stdin: bool) -> Any:
    """Return the value of the one source that is named; of stdin where none is, unless that is a terminal.

    Raise `invalid_input` of the field `input` for a source that cannot be read or is too large, `NoDocument` for what
    is not exactly one JSON value.
    """
    from headwater.operate.documents import Undecodable, decoded

    if (text is not None) + (path is not None) + stdin > 1:
        raise refuse("invalid_input", "The input is named twice; one source is meant.", field="input")
    content = _bytes(text, path)
    if len(content) > limits.INPUT_BYTES:
        raise refuse("invalid_input", "The input is larger than 1 MiB.", safe="Nothing was sent.", field="input")
    try:
        return decoded(content)
    except Undecodable:
        raise NoDocument("The input is not one JSON value.") from None


def business(text: str | None, path: str | None, *, stdin: bool) -> Any:
    """Return the value of exactly one source, for an approval: what cannot be decoded is `invalid_input` (CLI-022)."""
    import click

    if (text is not None) + (path is not None) + stdin != 1:
        raise click.UsageError("one input", click.get_current_context())
    try:
        return document(text, path, stdin=stdin)
    except NoDocument:
        raise _unread("The input is not one JSON value.") from None


def policy_document(path: str) -> tuple[str, ...]:
    """Read a policy from a file. Raise `invalid_input` of the field `input_file`."""
    from headwater.operate.writes.policy import read_policy

    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            return read_policy(file.read(limits.POLICY_BYTES + 1))
    except (OSError, ValueError):
        message = "The policy's document cannot be read."
    raise refuse("invalid_input", message, safe="Nothing was changed.", field="input_file")


def _bytes(text: str | None, path: str | None) -> bytes:
    if text is not None:
        return os.fsencode(text)
    try:
        if path is not None:
            with open(path, "rb") as file:
                return file.read(limits.INPUT_BYTES + 1)
        if sys.stdin is None or sys.stdin.isatty():
            raise _unread("Give the input with --input-json, --input-file, or through a pipe.")
        return sys.stdin.buffer.read(limits.INPUT_BYTES + 1)
    except OSError:
        raise _unread("The input cannot be read.") from None


def _unread(message: str) -> HeadwaterError:
    return refuse("invalid_input", message, safe="Nothing was sent.", field="input")
