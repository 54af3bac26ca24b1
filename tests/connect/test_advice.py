"""What a newcomer is told: the next command works as it stands, and what to enter is named."""

import json

import pytest

SHOP = "[connectors.shop.instances.me]\n"


@pytest.fixture
def unconnected(headwater):
    """An instance of a connector that knows several ways to sign in."""
    headwater.configure(SHOP + '[connectors.github.instances.me]\nendpoint = "https://127.0.0.1:9"\n')
    return headwater


def test_the_command_to_connect_chooses_a_way_to_sign_in(unconnected):
    told = unconnected.type("connections", "describe", "github/me").failure
    assert told["command"].endswith("connections connect github/me --profile token --credential-prompt")
    unconnected.configure(
        SHOP + '[connectors.github.instances.me]\nprofile = "oauth"\nendpoint = "https://127.0.0.1:9"\n'
    )
    told = unconnected.type("connections", "describe", "github/me").failure
    assert told["command"].endswith("connections connect github/me --credential-prompt")


def test_the_fields_to_enter_are_named(unconnected):
    words = ("connections", "connect", "github/me", "--profile", "token")
    told = unconnected.type(*words, *unconnected.entry(sentinel="x")).failure
    assert told["code"] == "invalid_input"
    assert told["message"].endswith("no others: token.")
    assert "sentinel" not in json.dumps(told)


def test_who_cannot_be_asked_is_told_to_connect(unconnected):
    told = unconnected.type("collect", "github/me").failure
    assert (told["code"], told["bindings"]) == ("binding_unavailable", ["interactive"])
    assert "connect its account" in told["message"]


def test_an_endpoint_is_written_by_no_command_that_chooses_no_way_to_sign_in(unconnected):
    """It would stay there, and another one would be refused."""
    before = (unconnected.place / "config.toml").read_text()
    words = ("connections", "connect", "github/work", "--endpoint", "https://127.0.0.1:9")
    assert "Choose a way to sign in" in unconnected.type(*words, *unconnected.entry(token="x")).failure["message"]
    assert (unconnected.place / "config.toml").read_text() == before
    answer = unconnected.type(*words, "--profile", "token", *unconnected.entry(token="x"))
    assert answer.failure["code"] == "unavailable"
    assert "github.instances.work" in (unconnected.place / "config.toml").read_text()
