"""Reasons to refuse a document, each with the place it was found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headwater.errors import HeadwaterError, refuse


@dataclass(frozen=True)
class Fault:
    """One reason to refuse a document: an RFC 6901 pointer, a rule's name and a sentence."""

    pointer: str
    rule: str
    message: str


def refusal(code: str, message: str, faults: Sequence[Fault]) -> HeadwaterError:
    """Make the refusal that reports every fault at once."""
    shown = "; ".join(f"{fault.pointer or '/'}: {fault.message}" for fault in faults[:8])
    more = f" (and {len(faults) - 8} more)" if len(faults) > 8 else ""
    listed = [{"pointer": fault.pointer, "rule": fault.rule, "message": fault.message} for fault in faults]
    return refuse(code, f"{message} {shown}{more}.", faults=listed)


class Reader:
    """Reads members of a JSON object and notes what is wrong, going on as far as it can."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._path: list[str] = []

    @contextmanager
    def at(self, *parts: str | int) -> Iterator[None]:
        """Read below a member or an index."""
        self._path += [str(part).replace("~", "~0").replace("/", "~1") for part in parts]
        try:
            yield
        finally:
            del self._path[-len(parts) :]

    @property
    def pointer(self) -> str:
        """The place being read, as an RFC 6901 pointer."""
        return "".join(f"/{part}" for part in self._path)

    def fault(self, rule: str, message: str) -> None:
        """Note a fault at the place being read."""
        self.faults.append(Fault(self.pointer, rule, message))

    def text(self, holder: dict[str, Any], name: str, *, required: bool = False) -> str | None:
        """Read a non-empty string."""
        value = self._member(holder, name, required)
        if value is None and name not in holder:
            return None
        if isinstance(value, str) and value:
            return value
        with self.at(name):
            self.fault("type", "must be a non-empty string")
        return None

    def flag(self, holder: dict[str, Any], name: str) -> bool | None:
        """Read an optional boolean."""
        value = holder.get(name)
        if name not in holder or isinstance(value, bool):
            return value
        with self.at(name):
            self.fault("type", "must be true or false")
        return None

    def table(self, holder: dict[str, Any], name: str) -> dict[str, Any]:
        """Read an optional object; an empty one stands for an absent one."""
        value = holder.get(name, {})
        if isinstance(value, dict):
            return value
        with self.at(name):
            self.fault("type", "must be an object")
        return {}

    def names(self, holder: dict[str, Any], name: str) -> tuple[str, ...] | None:
        """Read an optional array of non-empty strings."""
        if name not in holder:
            return None
        value = holder[name]
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        with self.at(name):
            self.fault("type", "must be an array of non-empty strings")
        return None

    def _member(self, holder: dict[str, Any], name: str, required: bool) -> Any:
        if required and name not in holder:
            with self.at(name):
                self.fault("required", "is missing")
        return holder.get(name)
