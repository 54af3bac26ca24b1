"""What refuses a launch, in its order: of two that hold at once the first is told, and nothing is handed over."""

import asyncio
import json
import os

import apsw
import pytest
from launch.conftest import TOKEN
from launch.test_handing_over import link as link_of

from headwater.configuration.selecting import Selection
from headwater.connect.reading import Material
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.joining.handing import Handing
from headwater.link import owner as link
from headwater.owner import handing
from headwater.settings import Settings

REFUSALS = {
    "unknown": ("not_found", "admission", "check_configuration"),
    "other_profile": ("forbidden", "admission", "request_permission"),
    "not_let_in": ("forbidden", "admission", "request_permission"),
    "other_program": ("invalid_configuration", "configuration", "check_configuration"),
    "not_connected": ("not_found", "admission", "create_connection"),
    "not_such": ("not_found", "admission", "check_configuration"),
    "revoked": ("revoked", "admission", "create_connection"),
    "moved": ("lifecycle_conflict", "admission", "revalidate_connection"),
    "lapsed": ("unavailable", "readiness", "revalidate_connection"),
    "no_custody": ("custody_unavailable", "custody", "check_configuration"),
}


class Wrong:
    """Makes several things wrong at once, and asks for a launch where the owner would."""

    def __init__(self, headwater) -> None:
        self.headwater = headwater
        self.known = headwater.connection("shop/me")["connection"]
        self.pinned = {}
        self.reference = None
        self.name = "reader"

    def unknown(self):
        self.name = "nobody"

    def not_let_in(self):
        self.pinned["alias"] = "shop.other"

    def other_profile(self):
        self.pinned["more"] = "permissions = { profiles = [], operations = [] }\n"

    def other_program(self):
        self.pinned["digest"] = "0" * 64

    def not_connected(self):
        sql(self.headwater, "UPDATE connections SET lifecycle = 'revoked'")

    def not_such(self):
        self.reference = "connection_none"

    def revoked(self):
        self.not_connected()
        self.reference = self.known

    def moved(self):
        config = self.headwater.place / "config.toml"
        config.write_text(config.read_text().replace(self.headwater.url, f"{self.headwater.url}/v2"))

    def lapsed(self):
        sql(self.headwater, "UPDATE connections SET evidence = json_set(evidence, '$.valid_until_ms', 1)")

    def no_custody(self):
        (self.headwater.place / "key").unlink(missing_ok=True)

    def refusal(self):
        self.headwater.consumer("cat <&3", **self.pinned)
        settings = Settings(self.headwater.place / "config.toml", self.headwater.state)
        asked = {"configuration": str(settings.config_path), "selection": ["shop", "me", None]}
        asked |= {"connection": self.reference, "consumer": self.name}
        with pytest.raises(HeadwaterError) as caught:
            asyncio.run(handing.Handing(Host(settings)).launch(asked))
        assert not any("memfd:" in link_of(name) for name in os.listdir("/proc/self/fd"))
        assert TOKEN not in repr((caught.value, vars(caught.value)))
        return (caught.value.code, caught.value.stage, caught.value.next_action)


def sql(headwater, statement, *values):
    database = apsw.Connection(str(headwater.state / "headwater.db"))
    try:
        return list(database.execute(statement, values))
    finally:
        database.close()


def code(told):
    return tuple(told.failure[name] for name in ("code", "stage", "next_action"))


@pytest.fixture
def wrong(running):
    """Faults of a Headwater that is whole again behind them."""
    running.consumer("cat <&3")
    wrong = Wrong(running)
    ((evidence,),) = sql(running, "SELECT evidence FROM connections")
    key, whole = running.place / "key", (running.place / "config.toml").read_text()
    held = key.read_text()
    yield wrong
    running.write("key", held)
    running.write("config.toml", whole)
    sql(running, "UPDATE connections SET lifecycle = 'live', evidence = ?", evidence)


@pytest.mark.clause("CLI-852", "CLI-856")
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("unknown", "not_let_in"),
        ("not_let_in", "other_program"),
        ("other_profile", "other_program"),
        ("other_program", "not_connected"),
        ("not_connected", "no_custody"),
        ("not_such", "no_custody"),
        ("revoked", "moved"),
        ("moved", "lapsed"),
        ("lapsed", "no_custody"),
        ("no_custody", "no_custody"),
    ],
)
def test_the_first_of_two_is_told(wrong, first, then):
    for fault in (then, first):
        getattr(wrong, fault)()
    assert wrong.refusal() == REFUSALS[first]


@pytest.mark.clause("CLI-852")
def test_a_revocation_while_custody_is_read_counts(wrong, monkeypatch):
    real = Material.read

    async def read(self, method, connection, **more):
        held = await real(self, method, connection, **more)
        wrong.revoked()
        return held

    monkeypatch.setattr(Material, "read", read)
    assert wrong.refusal() == REFUSALS["revoked"]


@pytest.mark.clause("CLI-852")
def test_nothing_runs_with_a_connection_that_was_revoked(headwater):
    """By its reference it is told as revoked; without, the instance is not connected."""
    headwater.consumer("echo ran")
    reference = headwater.connection()["connection"]
    assert headwater.type("connections", "revoke", "--expected-revision", "1").status == 0
    told = headwater.launch("--connection", reference)
    assert (told.status, code(told)) == (1, REFUSALS["revoked"])
    assert code(headwater.launch()) == REFUSALS["not_connected"]


@pytest.mark.clause("CLI-461")
def test_a_launch_asks_no_provider_whether_a_lapsed_connection_is_good_again(headwater, shop):
    """It would be: a revalidation asks, and then the launch goes on."""
    headwater.consumer("echo ran")
    sql(headwater, "UPDATE connections SET evidence = json_set(evidence, '$.valid_until_ms', 1)")
    before = shop.asked.copy()
    told = headwater.launch()
    assert (told.status, told.stdout, code(told)) == (1, "", REFUSALS["lapsed"])
    assert shop.asked == before
    assert headwater.type("connections", "revalidate", "shop/me", "--expected-revision", "1").status == 0
    assert shop.asked != before
    assert headwater.launch().stdout == "ran\n"


@pytest.mark.clause("CLI-852", "CLI-856")
def test_an_instance_that_is_not_there(running):
    running.consumer("echo ran")
    told = running.type("connections", "launch", "shop/none", "--consumer", "nobody")
    assert code(told) == REFUSALS["unknown"]


@pytest.mark.clause("CLI-856")
@pytest.mark.parametrize("how", ["gone", "link", "device", "folder"])
def test_a_program_that_is_no_file_of_those_bytes(running, how):
    running.consumer("echo ran")
    (config := running.place / "config.toml").write_text(
        config.read_text().replace('"/usr/bin/dash"', json.dumps(str(made(running.place, how))))
    )
    assert code(running.launch()) == REFUSALS["other_program"]


def made(place, how):
    path = place / f"a-{how}"
    if how == "link":
        path.symlink_to("/usr/bin/dash")
    if how == "folder":
        path.mkdir()
    return "/dev/zero" if how == "device" else path


def refused(headwater, config="config.toml"):
    settings = Settings(headwater.place / config, headwater.state)
    with pytest.raises(HeadwaterError) as caught:
        Handing(settings).launch(Selection("shop", "me"), None, "reader", [])
    return (caught.value.code, caught.value.stage, caught.value.next_action)


@pytest.mark.clause("CLI-852")
def test_an_owner_of_another_build_is_not_asked(running, monkeypatch):
    running.consumer("echo ran")
    assert running.launch().stdout == "ran\n"
    monkeypatch.setattr(link, "build", lambda: "0" * 64)
    assert refused(running) == ("owner_build_mismatch", "readiness", "stop_owner")


def test_an_owner_of_another_configuration_is_not_asked(running):
    """It would start what that one pins."""
    running.consumer("echo ran")
    assert running.launch().stdout == "ran\n"
    (running.place / "other.toml").write_text((running.place / "config.toml").read_text())
    link.build.cache_clear()
    assert refused(running, "other.toml") == ("owner_build_mismatch", "readiness", "stop_owner")
