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
