"""Attempts to sign in are counted before a provider is asked, in two places, and the strictest count decides."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signin.flows import BY_CODE, ENTERED, PASSWORD, SUBJECT, AsksForCodes, signing
from signin.shares import ATTEMPT, admitted

from headwater import clock, limits
from headwater.connect.failures import AuthFailure
from headwater.connect.throttle import Counted, OwnCounters, Throttle
from headwater.errors import refuse
from headwater.secret import Secret
from headwater.store.sqlite.signing_in import SignInStore

pytestmark = pytest.mark.anyio
SHARES = Path(__file__).with_name("shares.py")
LIMIT = limits.ATTEMPTS_PER_TARGET


class Off:
    """A layer that is switched off."""

    def add(self, counted, now_ms):
        return 0


class Down:
    """A store that is not there."""

    def add(self, counted, now_ms):
        raise refuse("metadata_unavailable")


def attempts(throttle: Throttle, count: int, **members) -> list[int]:
    return [admitted(throttle, replace(ATTEMPT, **members), 1_000 + number) for number in range(count)]


class TestCounts:
    @pytest.mark.clause("INT-310")
    @pytest.mark.parametrize("layer", ["own", "shared"])
    def test_each_layer_limits_alone(self, tmp_path, layer):
        store = SignInStore(tmp_path / "db")
        throttle = Throttle(OwnCounters(), Off()) if layer == "own" else Throttle(Off(), store)
        waits = attempts(throttle, LIMIT + 2)
        assert waits[:LIMIT] == [0] * LIMIT
        assert all(0 < wait <= 900 for wait in waits[LIMIT:])

    @pytest.mark.clause("INT-311")
    def test_many_owners_at_one_target_are_limited_by_it(self):
        throttle = Throttle(OwnCounters(), Off())
        for number in range(LIMIT):
            subject = ATTEMPT.subject.__class__("provider.example", "password", f"owner-{number}", "x")
            assert attempts(throttle, 1, subject=subject) == [0]
        assert attempts(throttle, 1)[0] > 0
        assert attempts(throttle, 1, target="somebody else") == [0]

    @pytest.mark.clause("INT-311")
    @pytest.mark.parametrize("address", ["", "203.0.113.7"])
    def test_one_owner_with_many_targets_is_limited_too(self, address):
        throttle, most = Throttle(OwnCounters(), Off()), limits.ATTEMPTS_PER_OWNER
        most = limits.ATTEMPTS_PER_ADDRESS if address else most
        waits = [attempts(throttle, 1, target=f"{number}", address=address)[0] for number in range(most + 1)]
        assert [bool(wait) for wait in waits] == [False] * most + [True]

    @pytest.mark.clause("INT-312")
    def test_processes_and_restarts_share_one_count(self, tmp_path):
        SignInStore(tmp_path / "db").claim("made", 1, 0)
        words = [sys.executable, str(SHARES), "attempt", str(tmp_path / "db"), str(LIMIT)]
        waits = []
        for _ in range(2):
            processes = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
            waits += [wait for process in processes for wait in json.loads(process.communicate(timeout=60)[0])]
        assert waits.count(0) == LIMIT

    @pytest.mark.clause("INT-315")
    def test_where_attempts_cannot_be_counted_nobody_may_try(self, tmp_path):
        assert attempts(Throttle(OwnCounters(), Down()), 1) == [limits.THROTTLE_UNKNOWN_SECONDS]
        (tmp_path / "db").write_text("no database at all, but long enough to be told from an empty one")
        assert attempts(Throttle(OwnCounters(), SignInStore(tmp_path / "db")), 1) == [limits.THROTTLE_UNKNOWN_SECONDS]

    @given(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=40).map(sorted))
    def test_both_layers_count_alike_and_a_wait_is_true(self, moments):
        own, shared = OwnCounters(), SignInStore(Path(":memory:").absolute())
        shared.__dict__["_connection"] = memory()
        one = [Counted(b"key", 3, 900)]
        for moment in moments:
            wait = own.add(one, moment)
            assert shared.add(one, moment) == wait
            assert 0 <= wait <= 900

    def test_after_the_wait_there_is_room(self):
        counters, one = OwnCounters(), [Counted(b"key", 2, 900)]
        assert [counters.add(one, moment) for moment in (0, 1_500)] == [0, 0]
        wait = counters.add(one, 2_000)
        assert counters.add(one, 2_000 + (wait - 1) * 1000) > 0
        assert counters.add(one, 2_000 + wait * 1000) == 0


def memory():
    """Return an empty database of ours."""
    import apsw

    from headwater.store.sqlite.schema import migrations

    connection = apsw.Connection(":memory:")
    for _, script in migrations():
        connection.execute(script)
    return connection


class TestSignIn:
    @pytest.mark.clause("INT-313")
    async def test_an_attempt_counts_before_the_provider_is_asked(self, tmp_path):
        provider = AsksForCodes()
        sign_in = signing(tmp_path, provider)
        for _ in range(LIMIT):
            await sign_in.start(SUBJECT, PASSWORD, ENTERED)
        with pytest.raises(AuthFailure) as caught:
            await sign_in.start(SUBJECT, PASSWORD, ENTERED)
        assert (caught.value.code, provider.started) == ("auth_throttled", LIMIT)
        assert 0 < caught.value.retry_after <= 900

    @pytest.mark.clause("INT-313")
    async def test_codes_are_sent_once_a_minute(self, tmp_path, monkeypatch):
        provider = AsksForCodes()
        sign_in = signing(tmp_path, provider)
        real = clock.millis()
        for second in range(100):
            monkeypatch.setattr(clock, "millis", lambda second=second: real + second * 1000)
            with suppress(AuthFailure):
                await sign_in.start(SUBJECT, BY_CODE, {"email": ENTERED["email"]})
        assert provider.started == 2

    @pytest.mark.clause("INT-313")
    async def test_answers_count_too(self, tmp_path):
        provider = AsksForCodes()
        sign_in = signing(tmp_path, provider)
        pending = await sign_in.start(SUBJECT, PASSWORD, ENTERED)
        codes = []
        for _ in range(LIMIT + 1):
            with pytest.raises(AuthFailure) as caught:
                await sign_in.complete(SUBJECT, PASSWORD, pending.auth_state, {"code": Secret("0")})
            codes.append(caught.value.code)
        assert codes == ["challenge_failed"] * (LIMIT - 1) + ["auth_throttled"] * 2

    @pytest.mark.clause("INT-314")
    async def test_nothing_shows_whether_there_is_such_an_account(self, tmp_path):
        sign_in = signing(tmp_path, AsksForCodes())
        refusals = []
        for email in ("known@example.org", "unknown@example.org"):
            for _ in range(LIMIT):
                await sign_in.start(SUBJECT, PASSWORD, {**ENTERED, "email": Secret(email)})
            with pytest.raises(AuthFailure) as caught:
                await sign_in.start(SUBJECT, PASSWORD, {**ENTERED, "email": Secret(email)})
            refusals.append((caught.value.code, caught.value.fields, str(caught.value)))
        assert refusals[0] == refusals[1]

    @pytest.mark.clause("INT-174", "INT-175", "INT-172")
    async def test_what_does_not_fit_is_told_and_nobody_is_asked(self, tmp_path):
        provider = AsksForCodes()
        sign_in = signing(tmp_path, provider)
        for fields in ({}, {"email": Secret("sentinel"), "password": Secret("")}, {**ENTERED, "sentinel": Secret("x")}):
            with pytest.raises(AuthFailure) as caught:
                await sign_in.start(SUBJECT, PASSWORD, fields)
            assert caught.value.code == "invalid_fields"
            assert "sentinel" not in f"{caught.value.fields}{caught.value!r}"
        assert provider.started == 0
        assert attempts(Throttle(OwnCounters(), SignInStore(tmp_path / "headwater.db")), LIMIT) == [0] * LIMIT

    def test_nobody_is_named_where_attempts_are_kept(self, tmp_path):
        store = SignInStore(tmp_path / "db")
        attempts(Throttle(OwnCounters(), store), 2, address="203.0.113.7")
        store.close()
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"ada@" not in kept
        assert b"203.0" not in kept
