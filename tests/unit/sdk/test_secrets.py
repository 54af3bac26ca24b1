"""What the owner answered, and other secrets, are refused where the host would keep them."""

from typing import Any

import pytest

from headwater.sdk.outcome import Misuse
from headwater.sdk.secrets import Secrets
from headwater.wire.messages import Interaction

LOGIN = {"properties": {"user": {"type": "string"}, "passphrase": {"type": "string", "format": "password"}}}


def answered(kind: Any = "otp", schema: Any = None, **data: Any) -> Secrets:
    """Return the secrets of a run whose owner answered."""
    secrets = Secrets()
    question = Interaction("q1", kind, "?") if schema is None else Interaction("q1", kind, "?", schema)
    secrets.remember(question, data)
    return secrets


@pytest.mark.clause("CP-408")
@pytest.mark.parametrize(
    "cursor",
    [
        {"code": "739105"},
        {"code": 739105},
        {"deep": [{"text": "before 739105 after"}]},
        {"739105": True},
        {"url": "https://shop.example/?code=739105"},
    ],
)
def test_a_cursor_with_the_code_is_refused(cursor: Any) -> None:
    """Wherever in it, and as a number too; the error does not repeat it."""
    with pytest.raises(Misuse) as caught:
        answered(code="739105").check(cursor, "the cursor of alpha")
    assert "739105" not in str(caught.value)


@pytest.mark.parametrize("cursor", [{"after": "739106"}, {"n": 7391}, {}, {"done": True, "x": None}])
def test_another_cursor_is_saved(cursor: Any) -> None:
    """What only resembles the code is none."""
    answered(code="739105").check(cursor, "the cursor of alpha")


def test_a_short_answer_is_looked_for_as_a_whole() -> None:
    """Three digits stand in many numbers by chance."""
    secrets = answered(code="123")
    secrets.check({"at": "2026-04-12T12:31:23Z", "n": 91234}, "a cursor")
    with pytest.raises(Misuse):
        secrets.check({"n": 123}, "a cursor")


def test_a_user_name_is_no_secret() -> None:
    """A cursor may name the account; the password it may not."""
    secrets = answered("credentials", LOGIN, user="ada@example.org", passphrase="correct horse")
    secrets.check({"account": "ada@example.org"}, "a cursor")
    with pytest.raises(Misuse):
        secrets.check({"login": "ada:correct horse"}, "a cursor")


def test_a_manual_action_has_no_secret() -> None:
    """`done` is a word that cursors use."""
    answered("manual_action", confirmation="done").check({"state": "done"}, "a cursor")


@pytest.mark.clause("CP-537")
@pytest.mark.parametrize(
    "locator",
    [
        {"access_token": "x"},
        {"headers": {"Authorization": "x"}},
        {"headers": [{"Set-Cookie": "x"}]},
        {"apiKey": "x"},
        {"url": "https://ada:hunter2@shop.example/7"},
        {"url": "https://shop.example/7?token=abc"},
        {"url": "https://bucket.example/7?X-Amz-Signature=abc&x=1"},
        {"url": "https://shop.example/#access_token=abc"},
        {"header": "Bearer abcdefghij"},
        {"note": "eyJhbGciOi.eyJzdWIi.c2lnbmF0"},
    ],
)
def test_a_locator_with_a_secret_is_refused(locator: Any) -> None:
    """By the name of a member, of a parameter, by userinfo and by its form; the error says where, and not what."""
    with pytest.raises(Misuse) as caught:
        Secrets().check_locator(locator)
    assert "abc" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "locator",
    [
        {"id": "7"},
        {"url": "https://shop.example/7?page=2"},
        {"mail": "ada@example.org"},
        {"page_token": "abc", "author": "Ada", "key": "7"},
        {"url": "http://[broken"},
    ],
)
def test_a_locator_that_only_finds_is_sent(locator: Any) -> None:
    """An address, a page, a place."""
    Secrets().check_locator(locator)


ASKS = """
@stream("inbox")
def inbox(s):
    code = s.run.ask("otp", "The code?")["code"]
    with s.details("bodies") as lane:
        for value in (lambda: s.save({"session": code}), lambda: lane.gap("b1", "later", locator={"with": code})):
            try:
                value()
            except Misuse as misuse:
                print(misuse)
        lane.gap("b1", "later", locator={"id": "b1"})
    s.save({"n": 1})
"""


@pytest.mark.clause("CP-408", "CP-537")
def test_an_answer_reaches_neither_cursor_nor_locator(written: Any, launched: Any) -> None:
    """In a whole run: both calls raise, nothing of them is on stdout, and the run goes on."""
    child = launched(written(ASKS, "MIX"))
    child.start("inbox", "bodies")
    assert child.line()["type"] == "INTERACTION"
    child.send({"type": "INTERACTION_RESPONSE", "request_id": "q1", "status": "success", "data": {"code": "739105"}})
    messages, errors, status = child.end()
    assert [message["type"] for message in messages] == ["DETAIL_GAP", "DETAIL_COVERAGE", "STATE", "DONE"]
    assert "739105" not in f"{messages} {errors}"
    assert errors.count("what the owner answered") == 2
    assert status == 0


FETCHES = """
@stream("inbox")
def inbox(s):
    token = s.run.options.get("token")
    if "locator" in s.run.options:
        s.emit({"id": s.run.options["locator"]["path"].rpartition("/")[2]})
        return
    with s.details("bodies") as lane:
        lane.gap("b7", "later", locator={"path": "/bodies/b7"})
        try:
            lane.gap("b8", "later", locator={"url": f"https://x.example/b8?access_token={token}"})
        except Misuse:
            lane.gap("b8", "later", locator={"path": "/bodies/b8"})
"""


@pytest.mark.clause("CP-537")
def test_a_locator_is_enough_to_fetch_the_detail(written: Any) -> None:
    """The token is in none, and each alone leads to its detail."""
    from headwater.sdk.testing import collect

    folder = written(FETCHES, "MIX")
    transcript = collect(folder, options={"token": "hunter2hunter2"})
    gaps = [message for message in transcript.messages if message["type"] == "DETAIL_GAP"]
    assert "hunter2" not in str(gaps)
    for gap in gaps:
        again = collect(folder, options={"locator": gap["detail_locator"]})
        assert again.records("inbox") == [{"id": gap["record_key"]}]
