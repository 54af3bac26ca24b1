"""Which custody the configuration chooses. It is that one or none: nothing falls back to another (CLI-404, CLI-410)."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from headwater import limits
from headwater.connect.ports import Custody
from headwater.errors import HeadwaterError, refuse
from headwater.owned import read_private
from headwater.secret import Secret
from headwater.vault.refusals import attempt, unavailable

Binding = Literal["secret_service", "macos_keychain", "windows_credential_manager", "mounted_secret"]

_PATHS: Final = frozenset({"file", "key_file", "passphrase_file"})
_KEY_BYTES: Final = 32


@dataclass(frozen=True)
class SealedFile:
    """The `[custody]` table of collect.toml: an encrypted file, and what opens it (decision 24).

    Without a key file or passphrase file the passphrase is asked for at the terminal.
    """

    path: Path
    key_file: Path | None = None
    passphrase_file: Path | None = None


@dataclass(frozen=True)
class Choice:
    """What the configuration says of custody. `binding` is None where it says nothing: the platform's own is meant.

    `directory` goes with `mounted_secret`; `secret_service_socket` is the session bus where it is not the usual one.
    """

    binding: Binding | None = None
    directory: Path | None = None
    secret_service_socket: Path | None = None
    sealed: SealedFile | None = None


def custody_for(choice: Choice, ask: Callable[[str], Secret] | None = None) -> Custody:
    """Return the custody that was chosen. Nothing of it is opened yet.

    `ask` asks a person for something by its label: for the passphrase of a sealed file, if that stands in no file, when
    the file is first used. Raise `invalid_configuration` for two choices at once or half a one, and
    `custody_unavailable` where this platform has none.
    """
    _checked(choice)
    if choice.sealed is not None:
        return _sealed(choice.sealed, ask)
    binding = choice.binding or ("macos_keychain" if sys.platform == "darwin" else "secret_service")
    if binding == "mounted_secret" and choice.directory is not None:
        from headwater.vault.mounted import MountedCustody

        return MountedCustody(choice.directory)
    if binding == "secret_service" and sys.platform == "linux":
        from headwater.vault.secret_service import SecretServiceCustody

        return SecretServiceCustody(choice.secret_service_socket)
    if binding == "macos_keychain" and sys.platform == "darwin":
        from headwater.vault.keychain import KeychainCustody

        return KeychainCustody()
    message = "The place of the credentials that is configured is not one of this platform."
    raise unavailable(message, "check_configuration")


def _sealed(sealed: SealedFile, ask: Callable[[str], Secret] | None) -> Custody:
    from headwater.vault.sealed_file import SealedFileCustody

    if sealed.key_file is not None:
        key_file = sealed.key_file
        return SealedFileCustody(sealed.path, "key_file", lambda: attempt(lambda: _key(key_file), _no_key()))
    if sealed.passphrase_file is not None:
        file = sealed.passphrase_file
        return SealedFileCustody(sealed.path, "passphrase", lambda: attempt(lambda: _passphrase(file), _no_key()))
    return SealedFileCustody(sealed.path, "passphrase", lambda: _entered(sealed.path, ask))


def _entered(path: Path, ask: Callable[[str], Secret] | None) -> Secret:
    """Return what a person enters: twice for a new file, which a slip would close for ever."""
    if ask is None or not (passphrase := ask("Passphrase of the sealed file")):
        raise unavailable("Nobody entered the passphrase of the sealed file.")
    if not path.exists() and ask("The same passphrase again") != passphrase:
        raise unavailable("The two passphrases differ.")
    return passphrase


def sealed_file(table: Mapping[str, object]) -> SealedFile:
    """Read the `[custody]` table of collect.toml, or raise `invalid_configuration`."""
    paths = {name: value for name, value in table.items() if name != "binding"}
    fits = table.get("binding") == "sealed_file" and "file" in paths and paths.keys() <= _PATHS and len(paths) <= 2
    if not fits or not all(isinstance(value, str) and Path(value).is_absolute() for value in paths.values()):
        raise _unfit(
            'of collect.toml needs binding = "sealed_file", an absolute `file`, and at most one of `key_file` and '
            "`passphrase_file`, absolute too"
        )
    found = {name: Path(str(value)) for name, value in paths.items()}
    return SealedFile(found["file"], found.get("key_file"), found.get("passphrase_file"))


def _checked(choice: Choice) -> None:
    in_configuration = (choice.binding, choice.directory, choice.secret_service_socket) != (None, None, None)
    if choice.sealed is not None and in_configuration:
        raise _unfit("is chosen twice: in config.toml and in collect.toml")
    mounted = choice.binding == "mounted_secret"
    if mounted is not (choice.directory is not None) or (mounted and choice.secret_service_socket):
        raise _unfit("needs a directory exactly for mounted_secret, and no secret_service_socket beside it")


def _unfit(what: str) -> HeadwaterError:
    return refuse("invalid_configuration", f"The custody {what}.")


def _key(path: Path) -> Secret:
    key = read_private(path, limits.KEY_FILE_BYTES)
    if len(key) < _KEY_BYTES:
        raise ValueError("too short")
    return key


def _passphrase(path: Path) -> Secret:
    """Return the first line of a file: what an editor adds behind it is no part of a passphrase."""
    line = Secret(read_private(path, limits.KEY_FILE_BYTES).reveal().partition(b"\n")[0].removesuffix(b"\r"))
    if not line:
        raise ValueError("empty")
    return line


def _no_key() -> HeadwaterError:
    message = (
        "The key file or passphrase file cannot be used: it must be a file of yours that nobody else can read "
        "(chmod 600), reached through no symbolic link; a key has at least 32 bytes, a passphrase one line."
    )
    return unavailable(message, "check_configuration")
