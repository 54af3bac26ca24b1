"""The one text of a provider that a failure may carry: why it refused, for a person to read (spec/002 section 6).

It decides nothing and is never parsed. It is foreign, and may repeat what it was sent: so it is carried only where no
rule speaks against it, and withheld whole otherwise.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from json import loads
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from msgspec import DecodeError, Raw, Struct, json

from headwater import limits

# White_Space of Unicode. What Python splits at holds U+001C to U+001F besides, which are controls.
_BLANK: Final = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
# Controls, formats (Cc, and Cf of Unicode 16: an interpreter's table may be older), and the rest that shows as nothing.
_UNSEEN: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    r"\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_ADDRESS: Final = re.compile("[@\uff20\ufe6b]")
_MARKERS: Final = (
    *("authorization", "bearer", "basic ", "password", "passwd", "secret", "cookie", "api_key", "apikey", "api-key"),
    *("private_key", "private key", "-----begin", "token=", "token:", "access_token", "refresh_token", "id_token"),
    *("client_assertion", "signature=", "sig=", "session="),
)
# A shorter one with a letter and a digit, from 20 bytes on, is part of a word that is withheld for its digit.
_RUN: Final = re.compile(rf"[A-Za-z0-9\-_+/=.~]{{{limits.REASON_RUN_BYTES}}}")
_SEPARATORS: Final = bytes(set(range(256)) - set(b"abcdefghijklmnopqrstuvwxyz0123456789"))


class _Refusal(Struct):
    message: Raw = Raw(b"null")
    error_description: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


def reason_in(body: bytes) -> str | None:
    """Return what a refusal's body says, as it stands, or None. It is foreign until it is `admitted`."""
    try:
        body.decode()
        found = json.decode(body, type=_Refusal)
        members = (bytes(member) for member in (found.message, found.error_description, found.error))
        return next((json.decode(member, type=str) for member in members if member.startswith(b'"')), None)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def admitted(reason: str, secrets: Iterable[bytes]) -> str | None:
    """Return what of a reason may be told, or None where it is withheld.

    `secrets` are what was sent as a credential, and what it was made of. What was admitted is admitted again unchanged,
    with other secrets at hand.
    """
    try:
        text = _BLANK.sub(" ", reason).strip(" ").encode()
    except UnicodeEncodeError:
        return None
    if not text or len(text) > limits.REASON_TAKEN_BYTES:
        return None
    start = text[: limits.REASON_LOOKED_AT_BYTES].decode(errors="ignore")
    if _UNSEEN.search(start) or _is_private(start) or _holds_piece(text, secrets):
        return None
    return _cut(text)


def strings_of(document: bytes) -> list[bytes]:
    """Return every string value of a protected document; all of it where it is no JSON, or holds none.

    Of a member that is named twice, both. An empty string is none.
    """
    try:
        waiting: list[Any] = [loads(document.decode(), object_pairs_hook=_values)]
    except (ValueError, RecursionError):
        return [document]
    strings: list[bytes] = []
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and value:
            strings.append(value.encode(errors="surrogatepass"))
    return strings or [document]


def _values(pairs: list[tuple[str, Any]]) -> list[Any]:
    return [value for _, value in pairs]


def _is_private(text: str) -> bool:
    """Whether a text holds an address, a name that a credential goes by, or the shape of one."""
    lowered = text.encode().lower()  # of bytes: ASCII alone
    return (
        _ADDRESS.search(text) is not None
        or any(marker.encode() in lowered for marker in _MARKERS)
        or _RUN.search(text) is not None
        or any(_is_like_token(word) for word in text.split(" "))
    )


def _is_like_token(word: str) -> bool:
    if len(word.encode()) < limits.REASON_WORD_BYTES:
        return False
    letters = [letter.isupper() for letter in word if letter.isascii() and letter.isalpha()]
    changes = sum(one is not other for one, other in pairwise(letters))
    return any(map(str.isdigit, word)) or (changes > 0 and changes * 4 >= len(letters))


def _holds_piece(text: bytes, secrets: Iterable[bytes]) -> bool:
    """Whether a text repeats eight bytes of a secret, or eight letters and digits whatever stands between them."""
    exact: set[bytes] = set()
    bare: set[bytes] = set()
    for secret in secrets:
        exact.update(_pieces(secret.lower()))
        bare.update(_pieces(_bare(secret)))
    readings = {text, unquote_to_bytes(text)}
    return any(_shares(reading.lower(), exact) or _shares(_bare(reading), bare) for reading in readings)


def _bare(value: bytes) -> bytes:
    return value.lower().translate(None, _SEPARATORS)


def _pieces(value: bytes) -> Iterator[bytes]:
    """Yield each eight bytes of a value; one that is shorter counts whole."""
    return _windows(value, min(len(value), limits.REASON_PIECE_BYTES)) if value else iter(())


def _shares(text: bytes, pieces: set[bytes]) -> bool:
    return any(not pieces.isdisjoint(_windows(text, width)) for width in {len(piece) for piece in pieces})


def _windows(value: bytes, width: int) -> Iterator[bytes]:
    return (value[start : start + width] for start in range(len(value) - width + 1))


def _cut(text: bytes) -> str | None:
    """Return what fits, back to its last whole word, or None where not one word does."""
    if len(text) <= limits.REASON_BYTES:
        return text.decode()
    words, blank, _ = text[: limits.REASON_BYTES + 1].rpartition(b" ")
    return words.decode() if blank else None
