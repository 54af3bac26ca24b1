"""The user's login keyring on a session bus: three things done to items, each by a few calls of the Secret Service API.

The collection is addressed by its own path, so that neither an alias nor the session's collection, which is lost when
the session ends, can stand in for it (CLI-402). Nothing here unlocks, prompts or starts a service (CLI-412): where the
service answers with a prompt, the prompt is left alone and the call has failed. No secret crosses the bus unencrypted.
"""

from typing import Final

from secretstorage import Item
from secretstorage.defines import SS_PREFIX
from secretstorage.util import DBusAddressWrapper, format_secret, open_session

from headwater.secret import Secret
from headwater.vault.refusals import attempt, unavailable, unknown
from headwater.vault.session_bus import SessionBus

_LOGIN: Final = "/org/freedesktop/secrets/collection/login"
_NONE: Final = "/"
_SCHEMA: Final = "headwater.Credential"
_LABEL: Final = "Headwater credential"


def is_locked(bus: SessionBus) -> bool:
    """Whether the login keyring is locked. Raise whatever the bus does where there is none."""
    return bool(_collection(bus).get_property("Locked"))


class LoginKeyring:
    """The keyring, unlocked by its owner beforehand. Raise `custody_unavailable` where it is not."""

    def __init__(self, bus: SessionBus) -> None:
        if is_locked(bus):
            raise unavailable("The login keyring is locked.")
        self._bus = bus
        self._session = open_session(bus)
        if not self._session.encrypted:
            raise unavailable("The keyring's service takes no encrypted connections.", "check_configuration")

    def keep(self, scope: str, version: str, content: Secret) -> None:
        """Create an item, find it again as a later reader will, and compare."""
        parcel = format_secret(self._session, content.reveal(), "application/octet-stream")
        attributes = ("a{ss}", _attributes(scope, version))
        properties = {f"{SS_PREFIX}Item.Label": ("s", _LABEL), f"{SS_PREFIX}Item.Attributes": attributes}

        def create() -> tuple[str, str]:
            item, prompt = _collection(self._bus).call("CreateItem", "a{sv}(oayays)b", properties, parcel, False)
            return item, prompt

        unsettled = unknown("It is not known whether the keyring holds the credential.")
        item, prompt = attempt(create, unsettled, exact=False)
        if item == _NONE and prompt != _NONE:
            raise unavailable("The keyring asks its owner before it stores anything.")
        if attempt(lambda: self.find(scope, version), unsettled, exact=False) != content:
            raise unsettled

    def find(self, scope: str, version: str) -> Secret | None:
        """Return the bytes of a version, or None."""
        item = self._item(scope, version)
        return None if item is None else Secret(Item(self._bus, item, self._session).get_secret())

    def erase(self, scope: str, version: str) -> bool:
        """Delete the item of a version and see that it is gone. Return whether there was one."""
        item = self._item(scope, version)
        if item is None:
            return False
        DBusAddressWrapper(item, f"{SS_PREFIX}Item", self._bus).call("Delete", "")
        if self._item(scope, version) is not None:
            raise unavailable("The keyring did not delete the credential.", safe="The credential is where it was.")
        return True

    def _item(self, scope: str, version: str) -> str | None:
        (found,) = _collection(self._bus).call("SearchItems", "a{ss}", _attributes(scope, version))
        if not found:
            return None
        (item,) = found
        if not str(item).startswith(f"{_LOGIN}/"):
            raise ValueError("an item of another collection")
        return str(item)


def _collection(bus: SessionBus) -> DBusAddressWrapper:
    return DBusAddressWrapper(_LOGIN, f"{SS_PREFIX}Collection", bus)


def _attributes(scope: str, version: str) -> dict[str, str]:
    return {"xdg:schema": _SCHEMA, "format": "1", "scope": scope, "version": version}
