"""What an operation answered. A catalog result, `{status, body, provenance}`, says how the provider did."""

from collections.abc import Mapping
from typing import Any


def is_catalog(result: Any) -> bool:
    """Whether a result is a catalog result (CLI-610)."""
    return isinstance(result, dict) and {"body", "provenance"} <= result.keys() and type(result.get("status")) is int


def failed_status(result: Any) -> int | None:
    """Return the status of a catalog result that is not 2xx, None for every other result."""
    if is_catalog(result) and not 200 <= result["status"] <= 299:
        return int(result["status"])
    return None


def content(result: Any) -> Any:
    """Return what the provider said: the body of a catalog result, and any other result as it is."""
    return result["body"] if is_catalog(result) else result


def kept(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an answer that no shaping takes away (CLI-620)."""
    return {name: answer[name] for name in ("request_id", "mutation", "source_audit") if name in answer}
