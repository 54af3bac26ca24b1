"""The example integration, asked by its own code: signed in to by hooks, in the same program."""

import shutil

import pytest
from connectors.connecting import configure, connect
from journeys.conftest import Headwater
from listing.conftest import EXAMPLE, service  # noqa: F401 - the service of the example
from operate.counter import ended

LEFT = ("invoke", "acme-tickets/me", "tickets.left", "--input-json")


@pytest.fixture
def typed(tmp_path):
    folder = shutil.copytree(EXAMPLE, tmp_path / "acme-tickets", ignore=shutil.ignore_patterns("__pycache__"))
    configure(tmp_path, f'[instances."acme-tickets/me"]\nfolder = "{folder}"\n')
    one = Headwater(tmp_path)
    yield one
    ended(one.state)


@pytest.mark.clause("CLI-262", "CLI-577")
def test_a_hook_that_starts_the_program_has_it_say_what_it_does(typed, service):  # noqa: F811
    """So nothing is started for a description; the answer counts what is on every page."""
    assert typed.type("connectors", "enable", "acme-tickets").status == 0
    connect(typed, "acme-tickets", service.endpoint, "token", {"token": "token-of-ada"})
    assert typed.type("setup", "owner-stop").status == 0
    page = typed.type("operations", "list", "acme-tickets/me").result
    assert ([one["id"] for one in page["operations"]], page["source"]) == (["tickets.left"], "cached")
    assert not (typed.state / "owner.sock").exists()
    service.lists["tickets"] += [{"id": f"t{n}", "event": "e1", "price_cents": 1, "left": n} for n in (2, 3, 4)]
    service.lists["tickets"] += [{"id": "t9", "event": "e2", "price_cents": 1, "left": 100}]
    assert typed.type(*LEFT, '{"event": "e1"}').result["result"] == {"left": 89}
    service.tokens.clear()
    failure = typed.type(*LEFT, '{"event": "e1"}').failure
    assert (failure["service_code"], failure["next_action"]) == ("unauthorized", "repair_connection")
