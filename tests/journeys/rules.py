"""Rules over what commands print that no shape can say: every result that a test reads is held to them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a value, itself included."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def broken(result: Any) -> list[str]:
    """Return which rules a result breaks (cli-types section 6, rules 1 to 6)."""
    return [told for node in objects(result) for told, holds in RULES.items() if not holds(node)]


def _caches(node: dict[str, Any]) -> bool:
    return node.get("source") != "cached" or node.get("stale") is True


def _acquires(node: dict[str, Any]) -> bool:
    if not {"acquisition", "state", "expires_at_ms"} <= node.keys():
        return True
    ends = ("reason" in node) is (node["state"] == "failed"), ("connection" in node) is (node["state"] == "completed")
    return all(ends)


def _lasts(node: dict[str, Any]) -> bool:
    if not isinstance(node.get("connections"), list) or "observed_at_ms" not in node:
        return True
    until = node.get("valid_until_ms")
    return node.get("stale") is True or (until is not None and until > node["observed_at_ms"])


def _walks(node: dict[str, Any]) -> bool:
    if not {"complete", "pages", "records", "out"} <= node.keys():
        return True
    resumes = node.get("stopped") in ("max_pages", "refused", "status", "write")
    ended = {node["complete"], "end" in node, "stopped" not in node}
    return len(ended) == 1 and ("resume" in node) is resumes and not (node.get("missing") and node["records"] == 0)


RULES: Final[Mapping[str, Callable[[dict[str, Any]], bool]]] = {
    "what is cached is not fresh": _caches,
    "an acquisition has a reason exactly where it failed, a connection exactly where it completed": _acquires,
    "a page is fresh until a time that is to come": _lasts,
    "a walk has an end, or why it stopped, and what it resumes with where it can go on": _walks,
    "what is missing is told where something is": lambda node: node.get("missing") != [],
}
