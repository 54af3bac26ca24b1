"""A provider with certificates of its own: whom the operator has believed there, and what a change of that does."""

import json
from pathlib import Path

import pytest
from signin.certificates import certified
from signin.provider import Asked, Reply, provider
from signin.test_connecting import SHOP, Consenting

DOCUMENT = json.loads((SHOP / "integration.json").read_text())


def ada(_: Asked) -> Reply:
    """Know the account of every token."""
    return Reply(body={"id": "ada", "name": "Ada"})


@pytest.fixture
def headwater(tmp_path: Path) -> Consenting:
    """A private Headwater."""
    return Consenting(tmp_path)


class Trusting:
    """An instance at a provider over TLS, whose table in `collect.toml` can be written anew."""

    def __init__(self, headwater: Consenting, url: str) -> None:
        self.headwater = headwater
        headwater.set_up(url, DOCUMENT)
        self._rest = (headwater.place / "collect.toml").read_text()

    def believe(self, line: str) -> None:
        """Write the provider's table."""
        self.headwater.write("collect.toml", f'{self._rest}[providers."shop.example"]\n{line}\n')

    def connect(self):
        """Connect with a token."""
        return self.headwater.type("connections", "connect", "shop/me", *self.headwater.entry(token="sentinel"))


@pytest.mark.clause("INT-493")
def test_a_provider_is_believed_by_the_certificates_that_are_named_for_it(headwater, tmp_path):
    """Without them it is not, and its credential stays here."""
    authority, context = certified(tmp_path)
    with provider(ada, context) as running:
        shop = Trusting(headwater, running.url)
        assert shop.connect().failure["code"] == "unavailable"
        assert running.asked == []
        shop.believe(f'ca_file = "{authority}"')
        shop.connect().result  # noqa: B018 - it has one
        assert headwater.connection()["state"] == "ready"
        shop.believe(f"ca = '''{authority.read_text()}'''")
        assert headwater.connection()["state"] == "ready"  # the same ones, in another place


@pytest.mark.clause("CLI-463", "CLI-467")
def test_a_connection_follows_other_certificates_by_a_revalidation_only(headwater, tmp_path):
    """They decide where a credential goes: until they are looked at, nothing is sent."""
    authority, context = certified(tmp_path)
    (tmp_path / "other").mkdir()
    other, _ = certified(tmp_path / "other")
    with provider(ada, context) as running:
        shop = Trusting(headwater, running.url)
        shop.believe(f'ca_file = "{authority}"')
        shop.connect().result  # noqa: B018
        authority.write_text(authority.read_text() + other.read_text())
        moved = headwater.connection()
        assert (moved["state"], moved["stale"]) == ("pending", True)
        asked = len(running.asked)
        refused = headwater.type("connections", "token", "shop/me").failure
        assert refused["next_action"] == "revalidate_connection"
        assert len(running.asked) == asked
        named = ["shop/me", "--expected-revision", str(moved["revision"])]
        headwater.type("connections", "revalidate", *named).result  # noqa: B018
        assert headwater.connection()["state"] == "ready"


@pytest.mark.parametrize("line", ['ca_file = "authority.pem"', 'ca = "none"', 'ca_file = "/nowhere/ca.pem"'])
def test_certificates_that_cannot_be_used_are_told_before_anything_is_asked(headwater, line):
    """And nothing is believed in their place."""
    shop = Trusting(headwater, "https://127.0.0.1:9")
    shop.believe(line)
    failure = shop.connect().failure
    assert (failure["code"], failure["next_action"]) == ("invalid_configuration", "check_configuration")
