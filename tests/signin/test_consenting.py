"""A whole sign-in with a person at hand: who is asked, how often, and until when."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import get_args

import pytest
from signin.flows import BY_CODE, ENTERED, GIVEN, PASSWORD, SUBJECT, AsksForCodes, signing
from signin.terminal import terminal

from headwater import clock, limits
from headwater.connect.consenting import Consenting
from headwater.connect.envelope import Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge
from headwater.connect.throttle import Throttle
from headwater.errors import HeadwaterError
from headwater.manifest.auth import Flow, Method
from headwater.secret import Secret

pytestmark = pytest.mark.anyio
OAUTH = Method("oauth", "Consent", "oauth")


class Unlimited:
    """Counters that count nothing."""

    def add(self, counted, now_ms):
        return 0


class Person:
    """Somebody who gives prepared answers, and remembers what was shown."""

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)
        self.shown: list[Challenge] = []

    def show(self, challenge: Challenge) -> None:
        self.shown.append(challenge)

    def answer(self, challenge: Challenge):
        self.shown.append(challenge)
        return {"code": Secret(self.codes.pop(0))}


class Devices(AsksForCodes):
    """A provider of the device grant, whose answers are prepared."""

    def __init__(self, *answers: Envelope | Challenge | None, interval: int = 5, lives: float = 60) -> None:
        super().__init__()
        ends = clock.now() + timedelta(seconds=lives)
        self.challenge = Challenge(
            "device", url="https://x.example/", user_code="U", interval_seconds=interval, expires_at=ends
        )
        self.answers = list(answers)

    async def start(self, method, fields, redirect_uri=None):
        assert redirect_uri is None
        return self.challenge

    async def complete(self, method, fields, challenge, answer):
        return self.answers.pop(0) if self.answers else None


@asynccontextmanager
async def listening():
    """Nobody comes back."""

    class Never:
        redirect_uri = "http://127.0.0.1:9/"

        async def parameters(self, state):
            await asyncio.Event().wait()

    yield Never()


def consenting(folder, provider, person, *, device=False, pauses=None):
    async def pause(seconds):
        if pauses is not None:
            pauses.append(seconds)

    free = Throttle(Unlimited(), Unlimited())
    return Consenting(signing(folder, provider, throttle=free), SUBJECT, person, listening, device, pause)


@pytest.mark.clause("INT-190")
def test_there_are_four_flows():
    assert set(get_args(Flow)) == {"token", "password", "verification_code", "oauth"}


class TestCodes:
    @pytest.mark.clause("INT-193")
    async def test_a_code_is_asked_for_by_a_masked_target(self, tmp_path):
        person = Person("123456")
        got = await consenting(tmp_path, AsksForCodes(), person).through(BY_CODE, {"email": ENTERED["email"]})
        assert got.envelope == GIVEN
        assert [challenge.target for challenge in person.shown] == ["a***@example.org"]
        assert "123456" not in repr(person.shown)

    @pytest.mark.clause("INT-193")
    async def test_a_wrong_code_is_asked_for_again_and_not_for_ever(self, tmp_path):
        assert (
            await consenting(tmp_path, AsksForCodes(), Person("0", "123456")).through(PASSWORD, ENTERED)
        ).envelope == GIVEN
        person = Person(*["0"] * 9)
        with pytest.raises(AuthFailure) as caught:
            await consenting(tmp_path, AsksForCodes(), person).through(PASSWORD, ENTERED)
        assert (caught.value.code, len(person.shown)) == ("auth_state_used", limits.AUTH_STATE_ANSWERS + 1)


class TestDevice:
    @pytest.mark.clause("CLI-374", "INT-194")
    async def test_the_provider_is_asked_as_often_as_it_allows(self, tmp_path):
        pauses: list[float] = []
        slower = Challenge("device", interval_seconds=10)
        provider = Devices(None, slower, None, GIVEN)
        person = Person()
        got = await consenting(tmp_path, provider, person, device=True, pauses=pauses).through(OAUTH, {})
        assert (got.envelope, pauses, len(person.shown)) == (GIVEN, [5, 5, 10, 10], 1)

    @pytest.mark.clause("INT-194")
    async def test_a_code_that_has_expired_ends_it(self, tmp_path):
        with pytest.raises(AuthFailure) as caught:
            await consenting(tmp_path, Devices(lives=0), Person(), device=True).through(OAUTH, {})
        assert caught.value.code == "auth_state_expired"

    @pytest.mark.clause("CLI-378")
    async def test_one_that_wants_to_be_asked_too_seldom_is_not_asked(self, tmp_path):
        pauses: list[float] = []
        slow = Devices(interval=int(limits.CONSENT_SECONDS) + 1)
        person = Person()
        with pytest.raises(HeadwaterError) as caught:
            await consenting(tmp_path, slow, person, device=True, pauses=pauses).through(OAUTH, {})
        assert (caught.value.code, pauses, person.shown) == ("unsupported", [], [])


class TestBrowser:
    @pytest.mark.clause("CLI-376")
    async def test_a_browser_that_does_not_come_back_in_time_ends_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(limits, "CONSENT_SECONDS", 0.05)

        class Redirects(AsksForCodes):
            async def start(self, method, fields, redirect_uri=None):
                return Challenge("redirect", url=f"https://x.example/?state=s&back={redirect_uri}")

        person = Person()
        with pytest.raises(AuthFailure) as caught:
            await consenting(tmp_path, Redirects(), person).through(OAUTH, {})
        assert caught.value.code == "auth_state_expired"
        assert [challenge.url for challenge in person.shown] == ["https://x.example/?state=s&back=http://127.0.0.1:9/"]

    @pytest.mark.parametrize("query", ["", "code=x", "state=", "state=a&state=b"])
    async def test_one_that_could_not_be_told_from_another_s_is_not_shown(self, tmp_path, query):
        class Redirects(AsksForCodes):
            async def start(self, method, fields, redirect_uri=None):
                return Challenge("redirect", url=f"https://x.example/?{query}")

        person = Person()
        with pytest.raises(AuthFailure) as caught:
            await consenting(tmp_path, Redirects(), person).through(OAUTH, {})
        assert (caught.value.code, person.shown) == ("provider_protocol_error", [])


SHOWS = """
from headwater.cli.consent import AtTerminal
from headwater.connect.ports import Challenge
AtTerminal().show(Challenge("redirect", url="https://x.example/\\x1b[31m"))
AtTerminal().show(Challenge("device", url="https://x.example/", user_code="U-1"))
"""


@pytest.mark.clause("CLI-373", "CLI-374", "CLI-385")
def test_what_is_wanted_is_shown_at_the_terminal_and_nowhere_else():
    with terminal(["-c", SHOWS]) as session:
        out, err = session.process.communicate(timeout=20)
        session.rest()
    assert (out, err) == (b"", b"")
    assert session.shown.splitlines() == [
        "headwater: consent-url https://x.example/\ufffd[31m".encode(),
        b"headwater: device-code U-1 https://x.example/",
    ]
