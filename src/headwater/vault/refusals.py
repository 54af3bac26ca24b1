"""What custody says when it cannot: the same few sentences from every place that credentials are kept in."""

from collections.abc import Callable
from typing import TypeVar

from headwater import limits
from headwater.codes import NextAction
from headwater.errors import HeadwaterError, refuse
from headwater.secret import Secret

T = TypeVar("T")

CHECK = "headwater setup check"


def unavailable(message: str, next_action: NextAction = "unlock_keyring", safe: str = "") -> HeadwaterError:
    """Custody cannot be used, and nothing in it was changed (CLI-403, CLI-415)."""
    safe = safe or "Nothing was stored, and nothing was kept anywhere else."
    return refuse("custody_unavailable", message, next_action=next_action, safe=safe, command=CHECK)


def unknown(message: str) -> HeadwaterError:
    """A write may have happened; it does not count (CLI-402, CLI-413)."""
    safe = "What was to be stored is not used."
    return refuse("outcome_unknown", message, stage="custody", safe=safe, command=CHECK)


def missing() -> HeadwaterError:
    """A version is not there, or is not of this connection."""
    message = "The credential is not where it was kept."
    return unavailable(message, "repair_connection", "The connection and what was collected are unharmed.")


def fitting(material: Secret) -> Secret:
    """Return what may be a version: 1 to 65,536 bytes (CLI-413)."""
    if not 1 <= len(material) <= limits.CUSTODY_BYTES:
        message = "A credential that is kept has 1 to 65,536 bytes."
        raise refuse("capacity", message, stage="custody", next_action="none", safe="Nothing was stored.")
    return material


def attempt(work: Callable[[], T], failure: HeadwaterError, *, exact: bool = True) -> T:
    """Do what depends on another program or on files. Whatever is wrong with them is told as `failure`.

    A refusal that the work itself raises is more exact, and stays, unless told otherwise. Causes are dropped, not
    chained: their words are another program's, and their frames may hold what a keyring holds.
    """
    try:
        return work()
    except HeadwaterError as refusal:
        failure = refusal if exact else failure
    except Exception:  # noqa: BLE001, S110 - the boundary to a keyring or a disk: no answer of theirs is ours to repeat
        pass
    failure.__cause__ = failure.__context__ = None
    raise failure
