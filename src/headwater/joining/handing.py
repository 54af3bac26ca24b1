"""What a command asks the owner to do with a credential: hand out an access token, start a consumer with it, copy it.

The owner is started where none runs, and answers only a program of its own build. Nothing of custody is read here.
"""

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from headwater import limits
from headwater.configuration.selecting import Selection
from headwater.connect.model import Target
from headwater.errors import HeadwaterError, refuse
from headwater.link.owner import Place, ask, ask_for, started
from headwater.secret import Secret
from headwater.settings import Settings


class Handing:
    """Asks the owner of one state directory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._place = Place.of(settings.state_dir)

    def token(
        self, selection: Selection, reference: str | None, *, reveal: bool
    ) -> tuple[dict[str, Any], Secret | None]:
        """Have an access token issued. Return what is told of it, and the token itself where it is to be revealed."""
        asked = self._asked(selection, reference)
        told = ask(self._place, "token", limits.OWNER_ANSWER_SECONDS, reveal=reveal, **asked)
        return told["issued"], Secret(told["access_token"]) if reveal else None

    def launch(self, selection: Selection, reference: str | None, consumer: str, arguments: Sequence[str]) -> int:
        """Run a consumer with the credential of a connection; return its exit status, 128 + N for signal N.

        `arguments` stand behind those that the configuration pins. Whatever refuses the launch starts nothing.
        """
        asked = self._asked(selection, reference)
        with ExitStack() as open_:
            told, descriptors = ask_for(
                self._place, "launch", limits.OWNER_ANSWER_SECONDS, 2, consumer=consumer, **asked
            )
            for descriptor in descriptors:
                open_.callback(os.close, descriptor)
            return _run(descriptors, [*told["arguments"], *arguments], _passed(told["pass_env"]))

    def copy(self, target: Target, reference: str) -> dict[str, Any]:
        """Have an instance connected with a copy of the credential of another instance's connection.

        Raise `outcome_unknown` where it is not known whether it was: its connections tell.
        """
        asked = self._asked(Selection(target.connector, target.instance), reference)
        revision = target.configuration_revision
        try:
            told = ask(self._place, "copy", limits.OWNER_ANSWER_SECONDS, configuration_revision=revision, **asked)
        except HeadwaterError as error:
            if error.code == "outcome_unknown":
                error.command = f"headwater connections list {target.name}"
            raise
        return dict(told["copied"])

    def _asked(self, selection: Selection, reference: str | None) -> dict[str, Any]:
        started(self._place, self._settings.config_path)
        named = [selection.connector, selection.instance, selection.adapter]
        return {"configuration": str(self._settings.config_path), "selection": named, "connection": reference}


def _run(descriptors: Sequence[int], arguments: Sequence[str], environment: Mapping[bytes, bytes]) -> int:
    from headwater.process.consumer import run

    program, document = descriptors
    try:
        return run(program, document, arguments, environment)
    except OSError as error:
        raise _unstarted(error) from None


def _unstarted(error: OSError) -> HeadwaterError:
    safe = "Nothing was started."
    if error.errno == errno.E2BIG:
        return refuse("capacity", "The arguments and variables are too large to start it with.", safe=safe)
    message = "The consumer's program cannot be run. It has to be a program itself: of a script, pin the interpreter."
    return refuse("invalid_configuration", message, stage="launch", safe=safe)


def _passed(prefixes: Sequence[str]) -> dict[bytes, bytes]:
    """Return the variables that a consumer gets: those of the caller whose names begin with one of the prefixes."""
    begun = tuple(os.fsencode(prefix) for prefix in prefixes)
    return {name: value for name, value in os.environb.items() if name.startswith(begun)}
