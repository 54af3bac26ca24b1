"""A connect, a reconnect and a revocation that are killed at any step of their disk: nothing half is ever usable.

HEADWATER_CONNECT_KILLS says how many kills there are (8), HEADWATER_SEED makes them the same again.
"""

import os
import random
import signal

import pytest

from headwater.store.sqlite.connections import opened

SEED = os.environ["HEADWATER_SEED"]
KILLS = int(os.environ.get("HEADWATER_CONNECT_KILLS", "8"))
OWNER = os.geteuid()


@pytest.fixture
def killed(headwater, commands):
    """Run a command of this Headwater, on a disk with a fault."""

    def run(*words, **fault):
        return commands.run(headwater.words("connections", *words)[3:], **fault)

    run.said = lambda: commands.said
    return run


def held(headwater):
    """Return the one connection that is held, None where there is none."""
    with opened(headwater.state / "headwater.db") as registry:
        found = registry.held(OWNER, "shop.me")
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.clause("CLI-380", "CLI-381", "CLI-382", "CLI-309")
@pytest.mark.parametrize("number", range(KILLS))
def test_a_connect_that_is_killed(headwater, killed, number):
    """It is connected with a credential that is there, or not at all; then a connect is admitted at once."""
    connect = ("connect", "shop/me", *headwater.entry(token="token-of-anna"))
    with opened(headwater.state / "headwater.db"):
        pass
    status, steps = killed(*connect)
    assert (status, killed("revoke", "--expected-revision", "1")[0]) == (0, 0)
    chance = random.Random(f"{SEED}:{number}")
    at, kind = chance.randint(1, steps), chance.choice(["before", "torn", "after"])
    assert killed(*connect, at=at, kind=kind)[0] in (-signal.SIGKILL, 0), (at, kind)
    if held(headwater) is None:
        assert killed(*connect)[0] == 0, (at, kind, killed.said())
    assert killed("revalidate", "--expected-revision", "1")[0] == 0, (at, kind, killed.said())
    assert held(headwater).lifecycle == "live"


@pytest.mark.clause("CLI-320", "CLI-380")
@pytest.mark.parametrize("number", range(KILLS // 2))
def test_a_reconnect_that_is_killed(headwater, shop, killed, number):
    """The old credential is in force, or the new one is; the connection works by the one that is."""
    assert killed("connect", "shop/me", *headwater.entry(token="token-of-anna"))[0] == 0
    reconnect = ("reconnect", "--expected-revision", "1", *headwater.entry(token="second-of-anna"))
    _, steps = killed(*reconnect)
    before = held(headwater).generation
    chance = random.Random(f"{SEED}:{number}")
    at, kind = chance.randint(1, steps), chance.choice(["before", "torn", "after"])
    killed(*reconnect, at=at, kind=kind)
    assert held(headwater).generation in (before, before + 1)
    assert killed("revalidate", "--expected-revision", "1")[0] == 0, (at, kind, killed.said())
    assert killed(*reconnect)[0] == 0, (at, kind, killed.said())


@pytest.mark.clause("CLI-330")
def test_a_revocation_that_was_told_stands(headwater, killed):
    """At whatever step it is killed, it is revoked or it is not; once it was told, it is for good."""
    assert killed("connect", "shop/me", *headwater.entry(token="token-of-anna"))[0] == 0
    revoke = ("revoke", "--expected-revision", "1")
    for at in range(1, 100):
        status, _ = killed(*revoke, at=at, kind="before")
        assert status in (0, -signal.SIGKILL), (at, killed.said())
        if status == 0 or held(headwater) is None:
            break
    assert held(headwater) is None
    assert killed("describe")[0] == 1
    assert killed.said()["code"] == "not_found"
