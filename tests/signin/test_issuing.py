"""An access token is handed out by one door, and every refusal has its row in the table."""

import asyncio
import json

import pytest
from signin.granting import SELECTED, Granting, Shown, connected, host, later, use
from signin.provider import Reply, provider
from signin.test_connecting import SHOP

from headwater.connect.entries import Means
from headwater.connect.issuing import Issued
from headwater.errors import HeadwaterError
from headwater.secret import Secret


def issue(headwater, reference: str | None = None) -> Issued:
    return asyncio.run(host(headwater).connecting.access_token(SELECTED, reference))


def refused(headwater, reference: str | None = None) -> dict:
    with pytest.raises(HeadwaterError) as caught:
        issue(headwater, reference)
    error = caught.value
    return {"code": error.code, "stage": error.stage, "next_action": error.next_action, **error.data}


def test_a_token_that_lives_is_handed_out_as_it_is(headwater, running, granting):
    granting.first = 300
    connected(headwater, running)
    issued = issue(headwater)
    assert (issued.access_token.text(), issued.scopes, issued.refreshed) == (
        "sentinel-access-1",
        ("archive.read",),
        False,
    )
    assert "sentinel" not in repr(issued)


@pytest.mark.clause("CLI-880")
def test_a_token_that_is_due_is_renewed_first(headwater, running, granting):
    connected(headwater, running)
    issued = issue(headwater)
    assert (issued.access_token.text(), issued.refreshed) == ("sentinel-access-2", True)
    assert issue(headwater).refreshed is False
    assert use(headwater) == "sentinel-access-2"


@pytest.mark.clause("CLI-871")
def test_a_static_token_is_not_handed_out(headwater, running, granting):
    document = json.loads((SHOP / "integration.json").read_text())
    document["auth"]["methods"][0]["identity"].update({"path": "/me", "subject": "/sub"})
    headwater.set_up(running.url, document)
    means = Means(lambda method: {"token": Secret("sentinel-static")}, Shown())
    asyncio.run(host(headwater).connecting.connect(SELECTED, means=means))
    assert refused(headwater) == {"code": "forbidden", "stage": "admission", "next_action": "request_permission"}


@pytest.mark.clause("CLI-872")
@pytest.mark.parametrize("how", ["refused", "lost", "stale"])
def test_a_refresh_that_is_refused_or_uncertain(headwater, running, granting, how):
    connected(headwater, running)
    if how == "lost":
        granting.says = [Reply(cut=True)]
    else:
        granting.good = "another"
    told = refused(headwater) if how != "stale" else (refused(headwater), refused(headwater))[1]
    assert told == {
        "code": "service_failure",
        "stage": "dispatch",
        "next_action": "repair_connection",
        "service_code": "unauthorized",
    }


@pytest.mark.clause("CLI-874")
def test_a_refresh_that_is_answered_as_revoked(headwater, running, granting):
    connected(headwater, running)
    granting.says = [Reply(400, {"error": "token_revoked"})]
    assert refused(headwater) == {"code": "revoked", "stage": "dispatch", "next_action": "create_connection"}


@pytest.mark.clause("CLI-873")
def test_a_refresh_that_grants_less(headwater, running, granting):
    connected(headwater, running)
    granting.says = [{"scope": "other"}]
    told = refused(headwater)
    assert (told["code"], told["next_action"]) == ("not_granted", "repair_connection")


@pytest.mark.clause("CLI-875", "CLI-879")
def test_a_provider_that_asks_to_wait(headwater, running, granting):
    connected(headwater, running)
    granting.says = [Reply(429, headers={"Retry-After": "7"})]
    assert refused(headwater) == {
        "code": "unavailable",
        "stage": "dispatch",
        "next_action": "retry_explicitly",
        "service_code": "rate_limited",
        "retry_after_seconds": 7,
    }


@pytest.mark.clause("CLI-876")
def test_a_provider_that_cannot_answer(headwater, running, granting):
    connected(headwater, running)
    granting.says = [Reply(503)]
    assert refused(headwater) == {"code": "unavailable", "stage": "dispatch", "next_action": "retry_status"}


@pytest.mark.clause("CLI-876")
def test_a_token_behind_its_end_with_nothing_in_its_place(headwater, running, granting, monkeypatch):
    granted = granting._granted
    granting._granted = lambda lifetime: Reply(
        body={name: value for name, value in granted(lifetime).body.items() if name != "refresh_token"}
    )
    connected(headwater, running)
    later(monkeypatch, seconds=40)
    told = refused(headwater)
    assert (told["code"], told["next_action"]) == ("unavailable", "retry_status")


def test_custody_that_cannot_be_read(headwater, running, granting):
    connected(headwater, running)
    (headwater.place / "key").unlink()
    told = refused(headwater)
    assert (told["code"], told["stage"]) == ("custody_unavailable", "custody")


def test_a_connection_that_was_revoked(headwater, running, granting):
    connected(headwater, running)
    connecting = host(headwater).connecting
    reference = connecting.describe(SELECTED, None)["connection"]["connection"]
    connecting.revoke(SELECTED, reference, "1")
    assert refused(headwater, reference)["code"] == "revoked"
    assert refused(headwater)["code"] == "not_found"


@pytest.mark.clause("CLI-467", "CLI-470")
def test_what_renews_a_token_goes_to_no_other_provider(headwater, running, granting):
    """One that was configured after the connection was made gets nothing, and is given nothing to hand out."""
    connected(headwater, running)
    config = headwater.place / "config.toml"
    with provider(Granting()) as other:
        config.write_text(config.read_text().replace(running.url, other.url))
        told = refused(headwater)
    assert (told["code"], told["stage"], told["next_action"]) == (
        "lifecycle_conflict",
        "admission",
        "check_configuration",
    )
    assert (other.asked, granting.refreshes) == ([], [])


@pytest.mark.clause("CLI-231")
def test_nothing_is_handed_out_where_the_connector_is_disabled(headwater, running, granting):
    granting.first = 300
    connected(headwater, running)
    config = headwater.place / "config.toml"
    table = "[connectors.shop.instances.me]"
    config.write_text(config.read_text().replace(table, f"[connectors.shop]\nenabled = false\n{table}"))
    assert refused(headwater)["code"] == "invalid_configuration"
