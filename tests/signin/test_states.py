"""The opaque state of an unfinished sign-in: bound, short-lived, used once, and nothing to read in it."""

import asyncio
import fcntl
import json
import subprocess
import sys
from base64 import urlsafe_b64decode
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from signin.flows import ENTERED, GIVEN, PASSWORD, SUBJECT, AsksForCodes, other, signing

from headwater import clock, limits
from headwater.connect.auth_state import AuthStates
from headwater.connect.failures import AuthFailure
from headwater.connect.flows import Pending
from headwater.connect.throttle import Throttle
from headwater.errors import HeadwaterError
from headwater.secret import Secret
from headwater.store.sqlite.signing_in import SignInStore
from headwater.vault.state_keys import StateKeys

pytestmark = pytest.mark.anyio
SHARES = Path(__file__).with_name("shares.py")
RIGHT, WRONG = {"code": Secret("123456")}, {"code": Secret("000000")}


class Unlimited:
    """Counters that count nothing."""

    def add(self, counted, now_ms):
        return 0


FREE = Throttle(Unlimited(), Unlimited())


@pytest.fixture
def provider() -> AsksForCodes:
    return AsksForCodes()


@pytest.fixture
def sign_in(tmp_path, provider):
    return signing(tmp_path, provider, throttle=FREE)


async def begun(sign_in, **options) -> Pending:
    pending = await sign_in.start(SUBJECT, PASSWORD, ENTERED, **options)
    assert isinstance(pending, Pending)
    return pending


async def refused(sign_in, state: Secret, answer=RIGHT, subject=SUBJECT) -> str:
    with pytest.raises(AuthFailure) as caught:
        await sign_in.complete(subject, PASSWORD, state, answer)
    return caught.value.code


def later(monkeypatch, **span) -> None:
    real = clock.millis()
    monkeypatch.setattr(clock, "millis", lambda: real + int(timedelta(**span).total_seconds() * 1000))


class TestBinding:
    @pytest.mark.clause("INT-192", "INT-223", "INT-225")
    async def test_a_right_answer_gives_the_credential_by_the_fields_of_the_start(self, sign_in, provider):
        pending = await begun(sign_in)
        assert pending.challenge.target == "a***@example.org"
        assert pending.challenge.upstream == {}
        assert (await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT)).envelope == GIVEN
        assert provider.given == [ENTERED]
        assert await refused(sign_in, pending.auth_state) == "auth_state_used"

    @pytest.mark.clause("INT-221")
    @pytest.mark.parametrize("name", ["provider", "method", "owner", "acting_user", "team"])
    async def test_a_state_is_of_its_subject(self, sign_in, provider, name):
        pending = await begun(sign_in)
        assert await refused(sign_in, pending.auth_state, subject=other(SUBJECT, name)) == "auth_state_invalid"
        assert provider.given == []

    @pytest.mark.clause("INT-221")
    @pytest.mark.parametrize("what", ["fields", "challenge"])
    async def test_a_state_is_of_what_was_entered_and_of_the_challenge(self, sign_in, provider, what):
        pending = await begun(sign_in)
        ((nonce, (end, held)),) = sign_in.states._held.items()
        changed = {
            "fields": replace(held, fields={**ENTERED, "email": Secret("eve@example.org")}),
            "challenge": replace(held, challenge=replace(held.challenge, upstream={"left": 1, "id": "another"})),
        }
        sign_in.states._held[nonce] = (end, changed[what])
        assert await refused(sign_in, pending.auth_state) == "auth_state_invalid"
        assert provider.given == []

    @pytest.mark.clause("INT-222")
    async def test_every_bit_counts(self, sign_in, provider):
        pending = await begun(sign_in)
        whole = pending.auth_state.reveal()
        for place in range(len(whole) * 8):
            changed = bytearray(whole)
            changed[place // 8] ^= 1 << place % 8
            assert await refused(sign_in, Secret(bytes(changed))) == "auth_state_invalid", place
        for changed in (whole[:-1], whole + b"A", whole + b"=", b"", whole[:40], whole * 100):
            assert await refused(sign_in, Secret(changed)) == "auth_state_invalid"
        assert provider.given == []
        assert (await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT)).envelope == GIVEN

    @pytest.mark.clause("INT-220", "INT-226", "INT-228")
    async def test_nothing_can_be_read_in_it_even_with_the_key(self, sign_in, tmp_path):
        pending = await begun(sign_in)
        assert len(pending.auth_state) <= limits.AUTH_STATE_BYTES
        assert pending.auth_state.text() not in repr(pending)
        opaque = urlsafe_b64decode(pending.auth_state.text().partition(".")[2] + "===")
        plain = StateKeys(tmp_path / "auth-state-keys").open(pending.auth_state.text())
        for secret in (b"sentinel", b"ada@example.org", b"example"):
            assert secret not in opaque
        assert b"sentinel" not in plain
        assert b"ada@" not in plain

    @pytest.mark.clause("INT-228")
    async def test_a_subject_that_makes_it_too_large_is_refused(self, sign_in):
        long = other(SUBJECT, "team").__class__("p" * 5000, "password", "1000", "1000")
        with pytest.raises(AuthFailure):
            await sign_in.start(long, PASSWORD, ENTERED)


class TestTime:
    @pytest.mark.clause("INT-224")
    async def test_it_ends_after_ten_minutes(self, sign_in, monkeypatch):
        first, second = await begun(sign_in), await begun(sign_in)
        later(monkeypatch, minutes=10, seconds=-1)
        assert (await sign_in.complete(SUBJECT, PASSWORD, first.auth_state, RIGHT)).envelope == GIVEN
        later(monkeypatch, seconds=2)
        assert await refused(sign_in, second.auth_state) == "auth_state_expired"

    @pytest.mark.clause("INT-227")
    async def test_a_key_is_replaced_and_the_one_before_it_still_opens(self, sign_in, tmp_path):
        keys = StateKeys(tmp_path / "auth-state-keys")
        first, second = await begun(sign_in), await begun(sign_in)
        keys.rotate()
        assert (await sign_in.complete(SUBJECT, PASSWORD, first.auth_state, RIGHT)).envelope == GIVEN
        keys.rotate()
        assert await refused(sign_in, second.auth_state) == "auth_state_invalid"

    @pytest.mark.clause("INT-227")
    async def test_a_key_is_replaced_after_a_month(self, tmp_path, monkeypatch):
        keys = StateKeys(tmp_path / "keys")
        first = keys.seal(b"")
        assert keys.seal(b"").partition(".")[0] == first.partition(".")[0]
        later(monkeypatch, days=31)
        assert keys.seal(b"").partition(".")[0] != first.partition(".")[0]
        assert keys.open(first) == b""

    async def test_the_keys_are_common_to_processes_and_only_their_owner_reads_them(self, tmp_path):
        first, second = StateKeys(tmp_path / "keys"), StateKeys(tmp_path / "keys")
        assert second.open(first.seal(b"plain")) == b"plain"
        assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600
        (tmp_path / "keys").chmod(0o644)
        with pytest.raises(Exception, match="only you"):
            first.seal(b"")

    async def test_a_process_that_holds_the_keys_is_not_waited_for_for_ever(self, tmp_path, monkeypatch):
        monkeypatch.setattr(limits, "SEALED_LOCK_SECONDS", 0.05)
        keys = StateKeys(tmp_path / "keys")
        sealed = keys.seal(b"plain")
        with (tmp_path / ".keys.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert keys.open(sealed) == b"plain"
            with pytest.raises(HeadwaterError) as caught:
                keys.rotate()
        assert caught.value.code == "metadata_unavailable"

    async def test_a_sign_in_ends_in_the_process_that_began_it(self, sign_in, tmp_path, provider):
        pending = await begun(sign_in)
        restarted = signing(tmp_path, provider, throttle=FREE)
        assert await refused(restarted, pending.auth_state) == "auth_state_expired"


class TestUse:
    @pytest.mark.clause("INT-225", "INT-193")
    async def test_five_wrong_answers_use_it_up(self, sign_in):
        pending = await begun(sign_in)
        for _ in range(limits.AUTH_STATE_ANSWERS):
            assert await refused(sign_in, pending.auth_state, WRONG) == "challenge_failed"
        assert await refused(sign_in, pending.auth_state, RIGHT) == "auth_state_used"
        assert sign_in.states._held == {}

    async def test_a_right_answer_behind_wrong_ones_counts(self, sign_in):
        pending = await begun(sign_in)
        for _ in range(limits.AUTH_STATE_ANSWERS - 1):
            assert await refused(sign_in, pending.auth_state, WRONG) == "challenge_failed"
        assert (await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT)).envelope == GIVEN

    @pytest.mark.clause("INT-225")
    async def test_two_answers_at_once_are_one(self, sign_in, provider):
        pending = await begun(sign_in)
        gate = asyncio.Event()
        answered = provider.complete

        async def slowly(*parts):
            await gate.wait()
            return await answered(*parts)

        provider.complete = slowly
        first = asyncio.create_task(sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT))
        await asyncio.sleep(0)
        assert await refused(sign_in, pending.auth_state) == "auth_state_used"
        gate.set()
        assert (await first).envelope == GIVEN

    @pytest.mark.clause("INT-225")
    def test_of_many_processes_one_takes_it(self, tmp_path):
        SignInStore(tmp_path / "db").claim("another", 1, 0)
        words = [sys.executable, str(SHARES), "claim", str(tmp_path / "db"), "20"]
        processes = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(4)]
        taken = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
        assert [sum(column) for column in zip(*taken, strict=True)] == [1] * 20

    async def test_a_failure_that_passes_does_not_use_it_up(self, sign_in, provider):
        pending = await begun(sign_in)
        provider.fails = AuthFailure("provider_unavailable")
        assert await refused(sign_in, pending.auth_state) == "provider_unavailable"
        provider.fails = None
        assert (await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT)).envelope == GIVEN

    async def test_an_answer_that_was_lost_uses_it_up(self, sign_in, provider):
        pending = await begun(sign_in)
        provider.fails = AuthFailure("exchange_unknown")
        assert await refused(sign_in, pending.auth_state) == "exchange_unknown"
        assert await refused(sign_in, pending.auth_state) == "auth_state_used"

    @pytest.mark.clause("INT-195")
    @pytest.mark.parametrize(("steps", "ends"), [(5, True), (6, False)])
    async def test_five_challenges_and_no_more(self, sign_in, provider, steps, ends):
        provider.steps = steps
        pending = await begun(sign_in)
        for _ in range(limits.SIGN_IN_CHALLENGES - 1):
            pending = await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT)
        if ends:
            assert (await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT)).envelope == GIVEN
        else:
            assert await refused(sign_in, pending.auth_state) == "provider_protocol_error"

    @pytest.mark.clause("INT-192")
    async def test_nothing_of_a_sign_in_is_held_behind_its_end(self, sign_in, tmp_path):
        pending = await begun(sign_in)
        await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, RIGHT)
        assert sign_in.states._held == {}
        for path in tmp_path.rglob("*"):
            assert b"sentinel" not in path.read_bytes()

    async def test_so_many_at_once_and_no_more(self, tmp_path, monkeypatch):
        monkeypatch.setattr(limits, "SIGN_INS_AT_ONCE", 2)
        states = AuthStates(StateKeys(tmp_path / "keys"), SignInStore(tmp_path / "db"))
        sign_in = signing(tmp_path, AsksForCodes(), states=states, throttle=FREE)
        await begun(sign_in)
        await begun(sign_in)
        with pytest.raises(AuthFailure) as caught:
            await begun(sign_in)
        assert caught.value.code == "auth_throttled"
        later(monkeypatch, minutes=11)
        await begun(sign_in)
