"""What now? What a connector's failure asks of the owner: its own hint, else one policy for every connector."""

from collections.abc import Mapping
from typing import Any, Final

SENTENCES: Final[Mapping[str, str]] = {
    "retry_by_runtime": "Nothing has to be done: run it again later.",
    "retry_on_connector_upgrade": "The connector has to be upgraded first.",
    "refresh_credentials": "Sign in again; what the connector knows is not accepted any more.",
    "manual_action_required": "Something has to be done by you, at the provider.",
    "update_selector": "What was asked for is not there as it was named: change the options or the scope.",
    "upstream_unblock": "The provider blocks it; that has to be lifted there.",
    "not_retriable": "Running it again will not help.",
    "unknown": "Read what the connector says; then run it again.",
}


def action_of(error: Mapping[str, Any]) -> str:
    """Return the action of a DONE.error or a skip as it is kept.

    Its `hint` decides, whatever the rest suggests (CP-830). Without one, what can be retried is retried and everything
    else is unknown; neither code nor text is looked at (CP-821, CP-833, CP-834).
    """
    return str(error.get("hint") or ("retry_by_runtime" if error.get("retryable") is True else "unknown"))
