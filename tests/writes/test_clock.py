"""The clock of approvals never goes back, and one that is not known here is not guessed at."""

import pytest
from operate.desk import SELECTION
from writes.shop import told

from headwater import clock
from headwater.errors import HeadwaterError
from headwater.store.sqlite.approvals import opened


def floor(shop) -> int:
    return shop.rows("SELECT floor_ms FROM approval_clocks")[0][0]


def set_back(shop, seconds: int) -> None:
    """Have the clock stand behind what approvals have seen: as if it had been set back by so much."""
    with opened(shop.database, shop.host.connecting.target(SELECTION).owner) as approvals:
        approvals.raised(clock.millis() + seconds * 1000)


@pytest.mark.clause("CLI-759")
def test_a_clock_that_went_back_approves_nothing_and_writes_nothing(shop):
    proof = shop.approve()
    set_back(shop, 60)
    error = shop.unwritten(proof=proof)
    assert told(error) == ("unavailable", "admission", "retry_status", "not_attempted")
    failure = shop.headwater.type("approvals", "clock-check").failure
    assert (failure["code"], failure["stage"], failure["next_action"]) == (
        "unavailable", "observation", "check_configuration"
    )  # fmt: skip
    with pytest.raises(Exception, match="shows an earlier time"):
        shop.approve()
    assert shop.changes == []


@pytest.mark.clause("CLI-759")
def test_a_second_is_forgiven_and_never_counted_down(shop):
    proof = shop.approve()
    set_back(shop, 1)
    before = floor(shop)
    assert shop.write(proof=proof)["mutation"]["classification"] == "applied"
    assert floor(shop) >= before


@pytest.mark.clause("CLI-480")
def test_looking_moves_no_clock(shop):
    shop.approve()
    before = floor(shop)
    shop.host.approving.prepare(SELECTION, "orders.cancel", (None, None), None, {"number": "7"})
    told_ = shop.headwater.type("approvals", "clock-check", "shop/me").result
    assert told_["observation"]["lower_unix_ms"] <= told_["observation"]["upper_unix_ms"]
    assert len(told_["sources"]) == 1
    assert floor(shop) == before


@pytest.mark.clause("CLI-758")
def test_a_retired_clock_stops_what_needs_one_and_nothing_else(shop):
    proof = shop.approve()
    shop.configure(head='[approval_clock]\nformat = "roughtime-clock/1"\n')
    for answer in (
        shop.headwater.type("approvals", "clock-check"),
        shop.headwater.type("approvals", "prepare", "orders.cancel", "shop/me", "--input-json", '{"number":"7"}'),
    ):
        assert answer.status == 2
        failure = answer.failure
        assert (failure["code"], failure["stage"], failure["next_action"], failure["configuration_rule"]) == (
            "invalid_configuration", "configuration", "check_configuration", "approval_clock_format_retired"
        )  # fmt: skip
    with pytest.raises(HeadwaterError) as caught:
        shop.write(proof=proof)
    error = caught.value
    assert (error.code, error.stage, error.next_action) == (
        "invalid_configuration", "configuration", "check_configuration"
    )  # fmt: skip
    assert shop.headwater.type("connections", "list", "shop/me").status == 0
    assert shop.changes == []


def test_a_clock_of_another_format_is_not_supported(shop):
    shop.configure(head='[approval_clock]\nformat = "roughtime-clock/2"\n')
    assert shop.headwater.type("approvals", "clock-check").failure["code"] == "unsupported"


@pytest.mark.clause("CLI-759")
def test_a_check_of_the_setup_says_that_the_clock_is_a_weaker_one(shop):
    def row():
        (found,) = [
            one
            for one in shop.headwater.type("setup", "check").result["prerequisites"]
            if one["name"] == "approval_clock"
        ]
        return found

    assert (row()["state"], "weaker" in row()["detail"]) == ("ready", True)
    set_back(shop, 60)
    assert (row()["state"], row()["next_action"]) == ("failed", "check_configuration")


def test_with_another_key_a_clock_that_was_wrong_begins_anew(shop):
    """Nothing that was approved by the wrong clock counts any more, and so nothing is given away."""
    set_back(shop, 10_000_000)
    assert shop.headwater.type("approvals", "clock-check").status == 1
    seen = shop.host.approval_keys.status()["issuer"]
    words = ["--expected-revision", str(seen["revision"]), "--expected-key", seen["keys"][0]["key_id"]]
    assert shop.headwater.type("approvals", "key-rotate", *words).status == 0
    assert shop.headwater.type("approvals", "clock-check").status == 0
    assert shop.write()["mutation"]["classification"] == "applied"
