"""What a document's faults are."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from headwater.manifest.reading import examine

Faults = Callable[[Any], list[tuple[str, str]]]


@pytest.fixture(scope="session")
def faults() -> Faults:
    """Return the place and rule of each fault of a document; a refusal without a fault, or the reverse, fails."""

    def found(document: Any) -> list[tuple[str, str]]:
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        declaration, faults = examine(text)
        assert (declaration is None) == bool(faults)
        return [(fault.pointer, fault.rule) for fault in faults]

    return found
