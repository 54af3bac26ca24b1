"""An access token, as it is typed: by an owner that really runs, of a provider that really renews."""

import asyncio
import json
import os

import apsw
import pytest
from launch.conftest import DASH, end_owner, pinned
from signin.conftest import granting, headwater, running  # noqa: F401 - a provider that grants, and who it is set up for
from signin.granting import SELECTED, connected, host, later
from signin.provider import Reply

from headwater import limits
from headwater.errors import HeadwaterError
from headwater.joining.handing import Handing
from headwater.link import owner as link
from headwater.link.owner import Place, is_held
from headwater.owner import handing
from headwater.settings import Settings
from headwater.store.sqlite.owner_records import OwnerRecords


@pytest.fixture
def consented(headwater, running):  # noqa: F811
    """A Headwater that is connected by consent. Its token is due."""
    yield connected(headwater, running)
    end_owner(headwater.state)


def typed(headwater, *words):  # noqa: F811
    return headwater.type("connections", "token", "shop/me", *words)


def issues(headwater):  # noqa: F811
    database = apsw.Connection(str(headwater.state / "headwater.db"))
    try:
        return list(database.execute("SELECT issue, connection, delivery, refreshed FROM access_token_issues"))
    finally:
        database.close()


@pytest.mark.clause("CLI-865", "CLI-866", "CLI-867", "CLI-870", "CLI-880")
def test_it_is_renewed_and_described_and_shown_nowhere(consented, granting):  # noqa: F811
    assert not is_held(Place.of(consented.state))
    first, second = typed(consented), typed(consented)
    told = first.result
    assert told["expires_at"].endswith("Z")
    assert (told["refreshed"], told["scopes"], told["instance"]) == (True, ["archive.read"], "me")
    assert second.result["refreshed"] is False
    assert not any("sentinel" in text for one in (first, second) for text in (one.stdout, one.stderr))
    assert [one[0] for one in issues(consented)] == [told["issue"], second.result["issue"]]
    assert {one[1:3] for one in issues(consented)} == {(told["connection"], "metadata_only")}
    assert [one[3] for one in issues(consented)] == [1, 0]
    assert len(granting.refreshes) == 1
    assert is_held(Place.of(consented.state))


@pytest.mark.clause("CLI-868", "CLI-870")
def test_it_is_revealed_and_nothing_else_is_printed(consented):
    for words in (["--reveal"], ["--reveal", "true"]):
        told = typed(consented, *words)
        assert (told.status, told.stdout, told.stderr) == (0, "sentinel-access-2\n", "")
    assert typed(consented, "--reveal", "false").result["refreshed"] is False
    assert [one[2] for one in issues(consented)] == ["revealed", "revealed", "metadata_only"]
    assert not consented.custody_holds("sentinel-access")


@pytest.mark.clause("CLI-223")
def test_a_deprecated_selector_adds_nothing_to_what_is_revealed(consented):
    """There is no envelope that could tell of it; a person is told, on stderr."""
    words = ("connections", "token", "--adapter", "shop.me", "--reveal")
    told = consented.type(*words)
    assert (told.status, told.stdout, told.stderr) == (0, "sentinel-access-2\n", "")
    without = consented.type(*words[:-1])
    assert [one["option"] for one in json.loads(without.stdout)["deprecations"]] == ["--adapter"]


def test_the_newest_issues_of_an_instance_are_kept(consented, monkeypatch):
    """Those of other instances stay, and so does one that a clock which was put back makes the oldest by its id."""
    monkeypatch.setattr(limits, "TOKEN_ISSUES_PER_INSTANCE", 3)
    records = OwnerRecords(consented.state / "headwater.db", os.geteuid())
    reference = consented.connection()["connection"]
    elsewhere = records.note_issue("of another instance", "revealed", refreshed=False)
    noted = [records.note_issue(reference, "revealed", refreshed=False) for _ in range(5)]
    assert [one[0] for one in issues(consented)] == [elsewhere, *noted[2:]]
    monkeypatch.setattr("headwater.clock.identifier", lambda prefix: f"{prefix}_0")
    assert records.note_issue(reference, "revealed", refreshed=False) == "issue_0"
    assert [one[0] for one in issues(consented)] == ["issue_0", elsewhere, *noted[3:]]


@pytest.mark.clause("CLI-869", "CLI-870", "CLI-875")
def test_a_refusal_is_told_as_any_other(consented, granting):  # noqa: F811
    granting.says = [Reply(429, headers={"Retry-After": "7"})]
    told = typed(consented, "--reveal")
    assert (told.status, told.failure["code"], told.failure["retry_after_seconds"]) == (1, "unavailable", 7)
    assert issues(consented) == []


@pytest.mark.clause("CLI-878", "CLI-870")
def test_custody_that_does_not_open(consented):
    consented.write("key", "z" * 43)
    told = typed(consented)
    wanted = ("custody_unavailable", "custody", "unlock_keyring")
    assert tuple(told.failure[name] for name in ("code", "stage", "next_action")) == wanted
    assert issues(consented) == []


def asked(headwater, **members):  # noqa: F811
    named = {"configuration": str(headwater.place / "config.toml"), "selection": ["shop", "me", None]}
    return {**named, "connection": None, "reveal": True, **members}


@pytest.mark.clause("CLI-877")
def test_a_deadline_keeps_what_was_renewed_meanwhile(consented, granting, monkeypatch):  # noqa: F811
    """The provider is slow; its answer comes behind the deadline, and is the next one's."""
    granting.pause.clear()
    real = asyncio.wait

    async def wait(tasks):  # what was sent is waited for: from then on the deadline is over
        granting.pause.set()
        return await real(tasks)

    monkeypatch.setattr(limits, "TOKEN_SECONDS", 0.5)
    monkeypatch.setattr("headwater.connect.refreshing.asyncio.wait", wait)
    with pytest.raises(HeadwaterError) as caught:
        asyncio.run(handing.Handing(host(consented)).token(asked(consented)))
    error = caught.value
    assert (error.code, error.stage, error.next_action) == ("timeout", "dispatch", "retry_explicitly")
    assert issues(consented) == []
    monkeypatch.undo()
    told = asyncio.run(handing.Handing(host(consented)).token(asked(consented)))
    assert (told["access_token"], told["issued"]["refreshed"]) == ("sentinel-access-2", False)
    assert len(granting.refreshes) == 1


@pytest.mark.clause("CLI-866")
def test_an_owner_of_another_build_is_not_asked(consented, monkeypatch):
    settings = Settings(consented.place / "config.toml", consented.state)
    link.build.cache_clear()
    link.started(Place.of(consented.state), settings.config_path)
    monkeypatch.setattr(link, "build", lambda: "0" * 64)
    with pytest.raises(HeadwaterError) as caught:
        Handing(settings).token(SELECTED, None, reveal=True)
    error = caught.value
    assert (error.code, error.stage, error.next_action) == ("owner_build_mismatch", "readiness", "stop_owner")
    assert issues(consented) == []


def test_it_crosses_the_socket_only_to_be_revealed(consented):
    """What is not asked for is not sent: a socket is one more place where it could be seen."""
    told = asyncio.run(handing.Handing(host(consented)).token(asked(consented, reveal=False)))
    assert "sentinel" not in json.dumps(told)


@pytest.mark.clause("CLI-855")
def test_a_consumer_gets_the_token_and_not_what_renews_it(consented, granting):  # noqa: F811
    typed(consented)
    descriptors = handed(consented)
    document = json.loads(os.read(descriptors[1], 4096))
    assert document.keys() == {"access_token", "token_type", "expires_at", "scopes"}
    assert document["access_token"] == "sentinel-access-2"
    assert len(granting.refreshes) == 1
    for one in descriptors:
        os.close(one)


def test_a_consumer_gets_no_token_that_has_expired(consented, granting, monkeypatch):  # noqa: F811
    """A launch renews nothing, also where the connection itself is good."""
    typed(consented)
    sql(consented, "UPDATE connections SET evidence = json_set(evidence, '$.valid_until_ms', 99999999999999)")
    later(monkeypatch, hours=2)
    with pytest.raises(HeadwaterError) as caught:
        handed(consented)
    error = caught.value
    assert (error.code, error.stage, error.next_action) == ("unavailable", "readiness", "revalidate_connection")
    assert len(granting.refreshes) == 1


def handed(headwater):  # noqa: F811
    config = headwater.place / "config.toml"
    if "consumers" not in config.read_text():
        config.write_text(config.read_text() + pinned(DASH, ["-c", "exit"]))
    whole = asked(headwater, consumer="reader")
    return asyncio.run(handing.Handing(host(headwater)).launch(whole)).descriptors


def sql(headwater, statement):  # noqa: F811
    database = apsw.Connection(str(headwater.state / "headwater.db"))
    database.execute(statement)
    database.close()
