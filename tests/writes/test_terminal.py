"""A write that is approved at the terminal: shown, asked for once, and done."""

import json

import pytest
from operate.test_definition_files import answer_at_terminal
from writes.shop import SHIP

WORDS = ["invoke", "shop/me", "orders.ship", "--input-json", json.dumps(SHIP), "--approve"]


@pytest.mark.clause("CLI-730")
def test_one_question_shows_the_request_and_a_yes_does_it(shop):
    answers = [(b"Do this? [y/N] ", b"y\n")]
    status, printed, shown = answer_at_terminal(shop.headwater, *WORDS, answers=answers)
    assert status == 0, printed
    assert json.loads(printed)["result"]["mutation"]["classification"] == "applied"
    assert f"request: PATCH {shop.running.url}/orders/7".encode() in shown
    assert b'"state": "sent"' in shown
    assert b"only if etag is: v1" in shown
    assert shop.changes == ["PATCH /orders/7"]


@pytest.mark.clause("CLI-730")
@pytest.mark.parametrize("said", [b"n\n", b"\n", b"\x04"])
def test_whatever_is_no_yes_does_nothing(shop, said):
    status, printed, _ = answer_at_terminal(shop.headwater, *WORDS, answers=[(b"[y/N] ", said)])
    assert (status, json.loads(printed)["error"]["data"]["code"]) == (1, "approval_required")
    assert shop.changes == []


@pytest.mark.clause("CLI-730", "CLI-574")
def test_without_a_terminal_nobody_is_asked(shop):
    failure = shop.headwater.type(*WORDS).failure
    assert failure["code"] == "approval_required"
    assert failure["approval_steps"] == ["approvals prepare", "approvals clock-check", "approvals issue"]
    assert shop.changes == []


def test_what_was_asked_before_with_a_key_is_told_without_a_question(shop):
    answers = [(b"Do this? [y/N] ", b"y\n")]
    words = [*WORDS, "--idempotency-key", "k"]
    answer_at_terminal(shop.headwater, *words, answers=answers)
    again = shop.headwater.type(*words).result
    assert again["mutation"]["replayed"]
    assert shop.changes == ["PATCH /orders/7"]


def test_text_of_an_input_cannot_drive_the_terminal(shop):
    given = {**SHIP, "etag": "v1\x1b]0;x\x07"}
    words = ["invoke", "shop/me", "orders.ship", "--input-json", json.dumps(given), "--approve"]
    _, _, shown = answer_at_terminal(shop.headwater, *words, answers=[(b"[y/N] ", b"n\n")])
    assert b"\x1b" not in shown
