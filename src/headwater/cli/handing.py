"""What is typed for a consumer."""

import click
import msgspec

from headwater import limits


def further(text: str) -> list[str]:
    """Read `--args`: a JSON array of texts, each as an argument can be. Anything else does not fit (CLI-853)."""
    try:
        arguments = msgspec.json.decode(text, type=list[str])
        fit = all("\0" not in one and len(one.encode()) <= limits.ARGUMENT_BYTES for one in arguments)
        if fit and len(arguments) <= limits.ARGUMENTS:
            return arguments
    except (msgspec.DecodeError, UnicodeError):
        pass
    raise click.BadParameter("", param_hint="--args")
