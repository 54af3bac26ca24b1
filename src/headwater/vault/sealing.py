"""A sealed file as bytes: AES-256-GCM under a key that Argon2id makes of a passphrase, or HKDF of a key file.

    magic | kind | salt 16 | check 32 | counter 8 | nonce 12 | ciphertext with its tag

All that stands before the ciphertext is authenticated with it. The parameters of Argon2id are those of the format, so
that no file can ask for weaker ones, or for a machine's whole memory.
"""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from struct import Struct
from typing import Final, Literal

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from headwater import clock
from headwater.secret import Secret

Kind = Literal["passphrase", "key_file"]
Contents = dict[str, dict[str, Secret]]
"""The versions of each scope."""

_MAGIC: Final = b"headwater-sealed/1\n"
_KINDS: Final[dict[Kind, bytes]] = {"passphrase": b"p", "key_file": b"k"}
_HEADER: Final = Struct(f">{len(_MAGIC)}s1s16s32sQ12s")
# RFC 9106, section 4: the second recommended choice.
_ITERATIONS, _LANES, _MEMORY_KIB = 3, 4, 64 * 1024


class WrongKey(Exception):
    """The passphrase or key file is not the one that the file was sealed with."""


class Damaged(Exception):
    """The file is no sealed file, or was changed by something else, or is older than one that was seen before."""


class Seal:
    """Opens and closes one sealed file. Its passphrase or key file is asked for once, and kept while this lives."""

    def __init__(self, kind: Kind, entry: Callable[[], Secret]) -> None:
        self._kind = _KINDS[kind]
        self._entry = entry
        self._entered: Secret | None = None
        self._salt = b""
        self._keys = (Secret(b""), Secret(b""))
        self._counter = 0

    def ask(self) -> None:
        """Ask for what opens the file, unless it is known. A person may be asked: nothing is locked meanwhile."""
        if self._entered is None:
            self._entered = self._entry()

    def open(self, sealed: Secret) -> Contents:
        """Return what a file holds. Raise `WrongKey` or `Damaged`."""
        content = sealed.reveal()
        header, ciphertext = content[: _HEADER.size], content[_HEADER.size :]
        if len(header) < _HEADER.size:
            raise Damaged
        magic, kind, salt, check, counter, nonce = _HEADER.unpack(header)
        if magic != _MAGIC or counter < self._counter:
            raise Damaged
        if kind != self._kind:
            raise WrongKey
        key, expected = self._derived(salt)
        if not hmac.compare_digest(check, expected.reveal()):
            self._entered, self._salt = None, b""  # the next try asks again
            raise WrongKey
        try:
            contents = _unpacked(Secret(AESGCM(key.reveal()).decrypt(nonce, ciphertext, header)))
        except (InvalidTag, ValueError):
            raise Damaged from None
        self._counter = counter
        return contents

    def close(self, contents: Contents) -> bytes:
        """Return the bytes of a file that holds the contents, one version on from the last that was opened."""
        salt, nonce = self._salt or clock.entropy(16), clock.entropy(12)
        key, check = self._derived(salt)
        header = _HEADER.pack(_MAGIC, self._kind, salt, check.reveal(), self._counter + 1, nonce)
        return header + AESGCM(key.reveal()).encrypt(nonce, _packed(contents), header)

    def _derived(self, salt: bytes) -> tuple[Secret, Secret]:
        """Return the file's key, and what tells a wrong passphrase from a damaged file."""
        if self._entered is None:
            raise WrongKey
        if salt != self._salt:
            long = _stretched(self._kind, self._entered, salt).reveal()
            self._salt, self._keys = salt, (Secret(long[:32]), Secret(long[32:]))
        return self._keys


def _stretched(kind: bytes, entered: Secret, salt: bytes) -> Secret:
    if kind == _KINDS["passphrase"]:
        kdf = Argon2id(salt=salt, length=64, iterations=_ITERATIONS, lanes=_LANES, memory_cost=_MEMORY_KIB)
        return Secret(kdf.derive(entered.reveal()))
    return Secret(HKDF(SHA256(), length=64, salt=salt, info=_MAGIC).derive(entered.reveal()))


def _packed(contents: Contents) -> bytes:
    rows = {
        scope: {version: b64encode(material.reveal()).decode() for version, material in versions.items()}
        for scope, versions in contents.items()
    }
    return msgspec.json.encode(rows)


def _unpacked(plain: Secret) -> Contents:
    rows = msgspec.json.decode(plain.reveal(), type=dict[str, dict[str, str]])
    return {
        scope: {version: Secret(b64decode(text)) for version, text in versions.items()}
        for scope, versions in rows.items()
    }
