"""What must never be printed.

A `Secret` holds bytes and shows nothing of them: not in a log, an f-string, a traceback or a
pickle. `reveal()` is the one door, so every place that opens it can be found by its name.
"""

import hmac
from typing import Final, NoReturn

_SHOWN: Final = "<secret>"


class Secret:
    """Bytes that print as `<secret>`; a text is held as its UTF-8 bytes."""

    __slots__ = ("_held",)

    def __init__(self, material: bytes | str) -> None:
        self._held = material.encode() if isinstance(material, str) else bytes(material)

    def reveal(self) -> bytes:
        """The bytes themselves: the one door."""
        return self._held

    def text(self) -> str:
        """The bytes as UTF-8 text; a `UnicodeError` that holds them never leaves here."""
        try:
            return self.reveal().decode()
        except UnicodeDecodeError:
            pass
        raise ValueError("the secret is not UTF-8 text")

    def __len__(self) -> int:
        return len(self._held)

    def __eq__(self, other: object) -> bool:
        """Compare in constant time, and with another secret only."""
        return hmac.compare_digest(self._held, other._held) if isinstance(other, Secret) else NotImplemented

    # A hash would be a fingerprint of the material.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return _SHOWN

    def __str__(self) -> str:
        return _SHOWN

    def __format__(self, spec: str) -> str:
        return format(_SHOWN, spec)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not copied to anywhere it could be read")
