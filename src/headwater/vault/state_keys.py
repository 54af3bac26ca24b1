"""The keys of `auth_state`, in a file that only their owner reads: common to the owner's processes, kept over restarts.

They guard no credential. Whoever has one can at most make a state for a sign-in that this machine itself has begun.
A key is replaced after a month; the one before it still opens what it sealed (INT-227).
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from headwater import clock, limits
from headwater.errors import refuse
from headwater.owned import folder, read_at
from headwater.secret import Secret
from headwater.vault.locking import locked

_KEPT: Final = 2
_NONCE_BYTES: Final = 12
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class _Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    material: bytes
    made_at_ms: int

    def __repr__(self) -> str:
        return f"_Key({self.id!r})"


class StateKeys:
    """Fills `Sealer` by AES-256-GCM: `ID.NONCE+CIPHERTEXT` in base64url, the id authenticated with the rest."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def seal(self, plain: bytes) -> str:
        """See `Sealer.seal`."""
        key = self._newest()
        nonce = clock.entropy(_NONCE_BYTES)
        sealed = nonce + AESGCM(key.material).encrypt(nonce, plain, key.id.encode())
        return f"{key.id}.{urlsafe_b64encode(sealed).decode().rstrip('=')}"

    def open(self, sealed: str) -> bytes:
        """See `Sealer.open`."""
        name, _, text = sealed.partition(".")
        key = next((key for key in self._read() if key.id == name), None)
        if key is None or not text.isascii():
            raise ValueError("not a state of ours")
        content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if urlsafe_b64encode(content).decode().rstrip("=") != text:  # a bit that says nothing was changed too
            raise ValueError("not a state of ours")
        try:
            return AESGCM(key.material).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], name.encode())
        except InvalidTag:
            raise ValueError("not a state of ours") from None

    def rotate(self) -> None:
        """Make a new key. What the key before it sealed can still be opened; what an older one sealed cannot."""
        with self._alone() as within:
            self._write(within, self._kept(within))

    def _newest(self) -> _Key:
        keys = self._read()
        if _is_over(keys):
            with self._alone() as within:
                keys = self._kept(within)
                if _is_over(keys):
                    keys = self._write(within, keys)
        return keys[0]

    def _read(self) -> Sequence[_Key]:
        with self._folder() as within:
            return self._kept(within)

    def _kept(self, within: int) -> Sequence[_Key]:
        try:
            content = read_at(within, self._path.name, limits.KEY_FILE_BYTES, private=True)
            return msgspec.json.decode(content.reveal(), type=list[_Key])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError):
            message = "The file of the keys for signing in is not one that only you can read; remove it."
            raise refuse("invalid_configuration", message) from None

    def _write(self, within: int, before: Sequence[_Key]) -> Sequence[_Key]:
        new = _Key(clock.identifier("key"), AESGCM.generate_key(256), clock.millis())
        keys = [new, *before][:_KEPT]
        beside = f".{self._path.name}.new"
        descriptor = os.open(beside, _NEW, 0o600, dir_fd=within)
        with os.fdopen(descriptor, "wb") as file:
            file.write(Secret(msgspec.json.encode(keys)).reveal())
            file.flush()
            os.fsync(descriptor)
        os.rename(beside, self._path.name, src_dir_fd=within, dst_dir_fd=within)
        return keys

    @contextmanager
    def _folder(self) -> Iterator[int]:
        try:
            with folder(self._path.parent) as within:
                yield within
        except OSError:
            message = "The state directory cannot be used."
            raise refuse("metadata_unavailable", message, safe="Nothing was sent.") from None

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Open the folder, one process at a time: two new keys would be one too many."""
        busy = refuse("metadata_unavailable", "Another process is in the file of the keys.", safe="Nothing was sent.")
        with self._folder() as within, locked(within, f".{self._path.name}.lock", busy):
            yield within


def _is_over(keys: Sequence[_Key]) -> bool:
    return not keys or clock.millis() - keys[0].made_at_ms > limits.STATE_KEY_SECONDS * 1000
