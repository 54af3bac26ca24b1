"""What a hostile service, or a hostile definition, cannot do."""

import subprocess

import pytest
from journeys.conftest import Headwater
from operate.desk import HEAD
from operate.test_pages import paged
from signin.provider import Reply

LIST = ("invoke", "shop", "orders.list", "--input-json", "{}")
DRIVING = "\x9b31m\x7f\u202e\u2028\x85\U000e0041"


def test_a_cookie_that_a_page_sets_is_not_sent_with_the_next(desk, typed):
    paged(desk)
    page = desk.replies["/orders"]
    desk.replies["/orders"] = lambda asked: Reply(body=page(asked).body, headers={"Set-Cookie": "seen=1; Path=/"})
    assert typed.type(*LIST, "--walk", "--out", "-").status == 0
    assert len(desk.paths) == 3
    assert not any("cookie" in asked.headers for asked in desk.running.asked)


@pytest.mark.clause("CLI-044")
@pytest.mark.parametrize("shaping", [(), ("--fields", "body"), ("--each", "body")])
def test_an_answer_cannot_drive_the_terminal_and_says_the_same(desk, shaping):
    desk.replies["/orders"] = Reply(body=f'["{DRIVING} é 漢"]'.encode())
    told = subprocess.run(Headwater(desk.headwater.place, "human").words(*LIST, *shaping), capture_output=True)
    printed = told.stdout.decode()
    assert all(character.isprintable() or character == "\n" for character in printed)
    escaped = r"\u009b31m\u007f\u202e\u2028\u0085\udb40\udc41 é 漢"
    assert escaped in printed


@pytest.mark.parametrize("words", [("invoke", "shop", "a", "--describe"), ("operations", "describe", "a", "shop/me")])
def test_the_name_of_a_parameter_cannot_drive_the_terminal(desk, words):
    desk.define(f'{HEAD}[operations.a]\ndescription = "A."\npath = "/a"\nparams."a\x9b31m" = {{}}\n')
    told = subprocess.run(Headwater(desk.headwater.place, "human").words(*words), capture_output=True)
    assert "  a\ufffd31m" in told.stdout.decode()
