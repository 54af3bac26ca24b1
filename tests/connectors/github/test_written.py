"""A GitHub account that is written to: an issue is opened, commented and closed, unless somebody was faster."""

from typing import Any

from connectors.connecting import configure, connect
from connectors.github.account import Account
from writes.by_hand import approve, permit, write

NAME = "github/me"


def test_an_issue_is_opened_commented_and_closed(account: Account, headwater: Any) -> None:
    configure(headwater.place)
    garden = account.world.add_repository("garden")
    at = {"owner": account.world.account["login"], "repo": "garden"}
    connect(headwater, "github", account.github.url, "token", {"token": account.world.token})
    permit(headwater, NAME, "issues.create", "issues.comment", "issues.set_state")

    opened = write(headwater, NAME, "issues.create", {**at, "body": {"title": "Water the beds"}}).result
    number = opened["result"]["body"]["number"]
    close = {**at, "number": number, "updated_at": opened["result"]["body"]["updated_at"], "body": {"state": "closed"}}
    proof = approve(headwater, NAME, "issues.set_state", close)
    commented = write(headwater, NAME, "issues.comment", {**at, "number": number, "body": {"body": "Done"}}).result
    assert commented["mutation"]["classification"] == "applied"
    failure = write(headwater, NAME, "issues.set_state", close, proof).failure
    assert (failure["service_code"], failure["mutation"]["classification"]) == ("conflict", "not_attempted")
    assert garden.issues[number]["state"] == "open"
    close["updated_at"] = garden.issues[number]["updated_at"]
    assert write(headwater, NAME, "issues.set_state", close).result["mutation"]["classification"] == "applied"
    assert garden.issues[number]["state"] == "closed"
