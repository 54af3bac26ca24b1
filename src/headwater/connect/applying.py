"""Settings that an integration applies at its provider: all of them or none, the ones before restored (INT-155)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headwater.connect.failures import AuthFailure
from headwater.connect.refusals import refusal_of
from headwater.errors import HeadwaterError, refuse

Values = Mapping[str, Any]
Apply = Callable[[Values], Awaitable[Values]]
"""Checks settings, then applies them; returns those that hold now. Raises `AuthFailure`."""


async def applied(apply: Apply, before: Values, wanted: Values, keep: Callable[[Values], None]) -> Values:
    """Apply settings and keep those that hold then.

    Of `invalid_fields` nothing was applied. Whatever else goes wrong, be it in the midst of applying or in keeping, the
    settings before are applied again; where not even that succeeds, `outcome_unknown` is raised.
    """
    try:
        held = await apply(wanted)
        keep(held)
    except AuthFailure as failure:
        if failure.code != "invalid_fields":
            await _restored(apply, before)
        refusal = refusal_of(failure, "validation")
        refusal.safe = "The settings are as they were."
        raise refusal from None
    except HeadwaterError:
        await _restored(apply, before)
        raise
    return held


async def _restored(apply: Apply, before: Values) -> None:
    try:
        await apply(before)
    except AuthFailure:
        message = "Applying the settings failed, and so did applying those before."
        raise refuse("outcome_unknown", message, safe="Headwater remembers the settings before.") from None
