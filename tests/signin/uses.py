"""A program that uses an instance's credential: `uses.py CONFIG STATE [AHEAD_SECONDS [DIES_BEFORE]]`.

It prints a digest of the access token, or the code of the refusal. `AHEAD_SECONDS` is by how much its clock is ahead.
`DIES_BEFORE` is a step that it is killed at: `keep`, when the provider has answered, or `publish`, when custody has it.
"""

import asyncio
import hashlib
import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from headwater import clock
from headwater.connect import refreshing
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.settings import Settings
from headwater.store.sqlite.connections import ConnectionRegistry


def used(settings: Settings) -> str:
    """Return a digest of the access token, or the refusal's code."""
    try:
        used = asyncio.run(Host(settings).connecting.credential_for("shop/me"))
    except HeadwaterError as error:
        return f"{error.code} {error.next_action}"
    assert used is not None
    return hashlib.sha256(used.credential.envelope.access_token.reveal()).hexdigest()


def die(*_: object) -> None:
    """Be killed, as by the kernel."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    config, state, *more = sys.argv[1:]
    ahead, step = int(more[0]) if more else 0, more[1] if len(more) > 1 else ""
    now = clock.now
    clock.now = lambda: now() + timedelta(seconds=ahead)
    if step == "keep":
        refreshing.sealed = die
    if step == "publish":
        ConnectionRegistry.publish = die
    print(json.dumps(used(Settings(Path(config), Path(state)))))
