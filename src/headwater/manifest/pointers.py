"""JSON pointers (RFC 6901): what is one, and what one names in a document."""

import re
from typing import Any, Final

# A lone surrogate is no text that a document can hold.
_POINTER: Final = re.compile(r"(?:/(?:[^~/\ud800-\udfff]|~[01])*)*")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")


def is_pointer(text: str) -> bool:
    """Whether a text is a JSON pointer; an empty one names the whole document."""
    return _POINTER.fullmatch(text) is not None


def tokens(pointer: str) -> tuple[str, ...]:
    """Return the names and indexes that a pointer is made of, as they stand in a document."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def at(document: Any, pointer: str) -> Any:
    """Return the value that a pointer names in a document; None where there is none, as for null."""
    for name in tokens(pointer):
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and _INDEX.fullmatch(name):
            document = document[int(name)] if int(name) < len(document) else None
        else:
            return None
    return document
