"""`headwater invoke --definition`: an operation of a definition file that no configuration names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cli.offering import chosen, instead
from headwater.cli.session import Cli
from headwater.errors import HeadwaterError, refuse

if TYPE_CHECKING:
    from headwater.connect.reusing import Source
    from headwater.joining.defining import Defining
    from headwater.joining.operating import Aimed


class Asking:
    """One command that asks by a definition file, from its words to its connection."""

    def __init__(self, cli: Cli, words: Sequence[str], asked: Mapping[str, Any]) -> None:
        """Read the definition, and refuse what does not go with it. Nothing is kept yet."""
        if len(words) not in (1, 2):
            raise refuse("invalid_input", "Name an operation of the definition.", field="target")
        *target, self._operation = words
        self._cli, self._asked = cli, asked
        root = asked["definitions_root"]
        self._defining: Defining = cli.host.defining(Path(asked["definition"]), None if root is None else Path(root))
        self._instance = self._defining.named(target[0] if target else None)

    def aimed(self) -> Aimed:
        """Return the operation; unless it is only described, the definition is recorded from now on."""
        pins = self._asked["schema"], self._asked["revision"]
        operating = self._cli.host.operating
        rehearsed = operating.rehearsed(self._defining.defined, self._instance, self._operation, pins)
        if self._asked["describe"]:
            return rehearsed
        with self._defining.recorded(self._instance) as name:
            return operating.aimed(name, self._operation, pins)

    def connect(self, aimed: Aimed) -> None:
        """Have the instance connected: where it is not, ask once at the terminal how (CLI-1070, CLI-1080)."""
        name = aimed.target.name
        if self._asked["credential_file"] is not None and self._defining.is_mounted:
            message = "The credential is read from where it is mounted, and not from a file."
            raise refuse("invalid_input", message, safe="Nothing was sent.", field="credential_file")
        if self._asked["reference"] is not None or self._defining.is_connected(name):
            return
        choice = chosen(aimed.target, self._cli.host.reusing.offers(aimed.target))
        if choice == "connect" or not self._reused(aimed, choice):
            self._acquire(aimed)

    def _reused(self, aimed: Aimed, source: Source) -> bool:
        """Have a credential copied. False where it was not, and the instance is to be connected instead (CLI-1088).

        Where it is not known whether it was, nothing more is offered (CLI-1089).
        """
        try:
            self._cli.host.handing.copy(aimed.target, source.connection.reference)
        except HeadwaterError as refusal:
            if refusal.code == "outcome_unknown" or not instead(aimed.target, refusal.message):
                raise
            return False
        return True

    def _acquire(self, aimed: Aimed) -> None:
        import asyncio

        from headwater.cli.consent import AtTerminal
        from headwater.cli.protected import Source
        from headwater.configuration.selecting import Selection
        from headwater.connect.entries import Means
        from headwater.connect.fields import entry_fields

        file, target = self._asked["credential_file"], aimed.target
        method = target.method(target.profile or "")
        source = Source("file", file) if file is not None else Source("prompt")
        asks = file is not None or (method is not None and bool(entry_fields(method)) and not self._defining.is_mounted)
        means = Means(source.read if asks else None, AtTerminal())
        selection = Selection(target.connector, target.instance)
        asyncio.run(self._cli.host.connecting.connect(selection, means=means))


def check_stdin(asked: Mapping[str, Any]) -> None:
    """Refuse a credential and an input that both claim stdin, before either is read (CLI-366)."""
    file, given = asked["credential_file"], asked["input_file"]
    if file is None or asked["input_json"] is not None:
        return
    try:
        stdin = os.fstat(0)
        if os.path.samestat(os.stat(file), stdin) and (given is None or os.path.samestat(os.stat(given), stdin)):
            message = "The credential and the input both stand at stdin; one of them has to come in another way."
            raise refuse("invalid_input", message, safe="Nothing of it was read.", field="credential_file")
    except (OSError, ValueError):
        return
