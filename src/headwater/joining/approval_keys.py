"""The keys that sign approvals, kept for real: joined to custody and store."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater import clock
from headwater.joining.configured import configuration_of
from headwater.store.sqlite.approvals import looked_at, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.operate.writes.keys import Keys
    from headwater.operate.writes.model import Issuer
    from headwater.secret import Secret
    from headwater.settings import Settings
    from headwater.store.sqlite.approvals import Approvals

Shown = dict[str, Any]


class ApprovalKeys:
    """The keys of one Headwater's owner. See `operate.writes.keys` for what may follow what."""

    def __init__(self, settings: Settings, passphrase: Callable[[str], Secret] | None = None) -> None:
        self._settings = settings
        self._passphrase = passphrase

    def status(self) -> Shown:
        """Return who signs, with every key."""
        configuration_of(self._settings)
        with looked_at(self._settings.database_path, os.geteuid()) as approvals:
            return _told(approvals.issuer())

    async def init(self, expected: str | None) -> Shown:
        """See `Keys.init`. What an earlier key has signed counts no more, and so the clock may begin anew."""
        with self._keys() as (keys, approvals):
            issuer = await keys.init(expected)
            approvals.begin_clock(clock.millis())
        return _told(issuer)

    async def rotate(self, expected: str, key: str) -> Shown:
        """See `Keys.rotate`. The clock begins anew, as in `init`."""
        with self._keys() as (keys, approvals):
            issuer = await keys.rotate(expected, key)
            approvals.begin_clock(clock.millis())
        return _told(issuer)

    async def recover(self, expected: str, candidate: str) -> Shown:
        """See `Keys.recover`."""
        with self._keys() as (keys, _):
            return _told(await keys.recover(expected, candidate))

    async def revoke(self, expected: str, key: str) -> Shown:
        """See `Keys.revoke`."""
        with self._keys() as (keys, _):
            return _told(await keys.revoke(expected, key))

    async def retire(self, expected: str, key: str) -> Shown:
        """See `Keys.retire`."""
        with self._keys() as (keys, _):
            return _told(await keys.retire(expected, key))

    @contextmanager
    def _keys(self) -> Iterator[tuple[Keys, Approvals]]:
        from headwater.joining.reaching import custody_of
        from headwater.operate.writes.keys import Keys
        from headwater.vault.signing import new_pair, public_of

        custody, _ = custody_of(self._settings, configuration_of(self._settings), self._passphrase)
        with opened(self._settings.database_path, os.geteuid()) as approvals:
            yield Keys(approvals, custody, new_pair, lambda: clock.identifier("issuer"), public_of), approvals


def _told(issuer: Issuer | None) -> Shown:
    if issuer is None:
        return {}
    keys = [{"key_id": key.key_id, "public_key": key.public, "state": key.state} for key in issuer.keys]
    told = {"issuer": issuer.name, "audience": issuer.audience, "revision": issuer.revision, "keys": keys}
    return {"issuer": told}
