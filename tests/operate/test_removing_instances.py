"""An instance is forgotten, and nothing of what it collected."""

import tomllib

import pytest
from journeys.conftest import Headwater
from operate.desk import TOKEN

COLLECT = """format = "headwater-collect/1"

# Mine.
[instances."git/other"]

[instances."git/here"]
streams = ["commits"]

[instances."git/here".options]
path = "."

[instances."git/here".bindings."example.com/gpu"]
cores = 8

[instances."git/here".bindings."example.com/disk"]
limits = { soft = { bytes = 1 }, hard = { bytes = 2 } }

[instances."git/here".schedule]
every = "1h"

[instances."git/last".options]
path = "."
"""


@pytest.fixture
def headwater(tmp_path):
    return Headwater(tmp_path)


def test_all_that_was_set_up_is_gone_and_every_other_byte_stays(headwater):
    path = headwater.place / "collect.toml"
    path.write_text(COLLECT)
    path.chmod(0o600)
    told = headwater.type("instances", "remove", "git/here").result
    assert told == {"instance": "git/here", "kept": ["records", "cursors"], "configured": False}
    after = path.read_text()
    assert tomllib.loads(after)["instances"] == {"git/other": {}, "git/last": {"options": {"path": "."}}}
    head, _, rest = COLLECT.partition('\n[instances."git/here"]')
    assert after == head + rest[rest.index('\n[instances."git/last"') :]
    assert headwater.type("instances", "remove", "git/here").failure["code"] == "not_found"


def test_records_and_cursors_stay(headwater):
    assert headwater.collect("good.sh").status == 0
    keys, cursors = headwater.keys(), headwater.cursors()
    assert headwater.type("instances", "remove", "guest/adhoc").failure["code"] == "not_found"
    headwater.type("instances", "add", "git/here", "--set", "path=.")
    assert headwater.type("instances", "remove", "git/here").status == 0
    assert (headwater.keys(), headwater.cursors()) == (keys, cursors)


def test_one_that_is_connected_is_not_forgotten(desk):
    failure = desk.headwater.type("instances", "remove", "shop/me").failure
    assert (failure["code"], failure["next_action"]) == ("lifecycle_conflict", "revoke_connection")
    assert failure["command"] == "headwater connections revoke shop/me --expected-revision 1"
    assert desk.ask()["result"]["status"] == 200
    assert desk.headwater.type("connections", "revoke", "shop/me", "--expected-revision", "1").status == 0
    told = desk.headwater.type("instances", "remove", "shop/me").result
    assert told["configured"] is True
    assert TOKEN not in (desk.headwater.place / "collect.toml").read_text()


def test_what_headwater_wrote_of_one_it_can_take_away(headwater):
    """Bindings and options are written on one line each, tables within tables too."""
    bound = ("--binding", 'example.com/gpu={"a": {"b": 1}}')
    headwater.type("instances", "add", "git/here", "--set", "path=.", *bound)
    assert headwater.type("instances", "remove", "git/here").status == 0
    assert "git/here" not in (headwater.place / "collect.toml").read_text()
