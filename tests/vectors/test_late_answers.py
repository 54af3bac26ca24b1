"""Answers that come late, or never, to a real connector: it gets one answer in time, and no other."""

import asyncio

import pytest
from vectors.notation import manifest_text

from headwater import limits
from headwater.events import Asked
from headwater.host import Host
from headwater.joining.programs import CollectRequest, Watching
from headwater.settings import Settings


class Silent:
    """Somebody who never answers."""

    async def answer(self, question):
        await asyncio.Event().wait()


class Late:
    """Somebody who answers only when the time is over."""

    async def answer(self, question):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"password": "too late"}


@pytest.fixture
def asked(tmp_path, stage):
    """Let a connector ask once, and return what it was told and for how many seconds the owner was asked."""

    def asking(respondent, timeout=""):
        real = stage("FLAT")
        guest = [*real.command[:2], str(real.guest.with_name("asks.py")), timeout, "succeeded"]
        host = Host(Settings(tmp_path / "config.toml", tmp_path / "state"))
        seconds = []

        def observe(event):
            if isinstance(event, Asked):
                seconds.append(event.timeout_seconds)

        request = CollectRequest(host.program_of(manifest_text("FLAT"), guest))
        outcome = asyncio.run(host.collect(request, Watching(observe, respondent)))
        assert outcome.verdict.status == "succeeded"
        ((told,),) = real.ask("SELECT json_extract(data, '$.status') FROM versions")
        return told, seconds

    return asking


@pytest.mark.clause("CP-706", "CP-707")
def test_a_question_without_a_time_gets_one_of_ours(asked, monkeypatch):
    """A connector that names no timeout is told `timeout` all the same, after the runtime's own."""
    assert limits.INTERACTION_SECONDS <= limits.INTERACTION_MAX_SECONDS
    monkeypatch.setattr("headwater.wire.messages.INTERACTION_SECONDS", 0.2)
    assert asked(Silent()) == ("timeout", [0.2])


@pytest.mark.clause("CP-708")
def test_an_answer_after_its_time_is_not_passed_on(asked):
    """The connector is told `timeout`, once, and what the owner said too late reaches nobody."""
    assert asked(Late(), "0.2") == ("timeout", [0.2])
