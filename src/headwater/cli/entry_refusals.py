"""Why a credential cannot be entered, and how it can be."""

from headwater.errors import HeadwaterError, refuse

WAYS = (
    "Use --credential-prompt at a terminal, --credential-file with a file that only you can read, "
    "or --credential-stdin with such a file or a pipe."
)


def unavailable(why: str) -> HeadwaterError:
    """There is no way to enter a credential, and which ways there are (CLI-352)."""
    return refuse("protected_entry_unavailable", f"{why} {WAYS}", safe="Nothing was read, and nothing was sent.")
