"""A definition's instance that is connected with the credential of another one: the offer, the copy, its refusals."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from journeys.conftest import Headwater
from launch.conftest import end_owner
from msgspec.structs import replace
from operate.desk import SELECTION, TOKEN, Desk, whoami
from operate.test_definition_files import ASK, answer_at_terminal, definition, failure
from operate.test_definition_files import entry as entry  # noqa: PLC0414 - a fixture
from signin.provider import Asked, Reply

from headwater import limits
from headwater.configuration.selecting import Selection
from headwater.connect.model import Connection
from headwater.connect.reusing import Source
from headwater.errors import HeadwaterError
from headwater.store.sqlite.connections import opened

AUTH = """
[[auth.methods]]
key = "api_token"
label = "Another label"
flow = "token"
scheme = "token"
evidenceLifetimeMs = 50000
fields = [{ name = "token", label = "API token", type = "token", required = true }]
identity = { source = "api", kind = "user", path = "/whoami", subject = "/id", display = "/name" }
"""
DEFINITION = Selection("shop", "definition")
ONE = b"[1/c/N] "
INSTEAD = b"now? [y/N] "


@pytest.fixture
def file(unconnected: Desk) -> Iterator[Path]:
    """A definition of the shop that `shop/me` is connected to. A check of that counts for as long as it may."""
    integration = unconnected.headwater.place / "connector" / "integration.json"
    lifetime = f'"key": "api_token", "evidenceLifetimeMs": {limits.EVIDENCE_LIFETIME_MAX_MS}'
    integration.write_text(integration.read_text().replace('"key": "api_token"', lifetime))
    path = unconnected.headwater.place / "root" / "desk" / "shop.toml"
    path.parent.mkdir(parents=True)
    path.write_text(definition(unconnected.running.url, auth=AUTH))
    unconnected.connect()
    unconnected.running.asked.clear()
    yield path
    end_owner(unconnected.headwater.state)


@pytest.fixture
def typed(unconnected: Desk) -> Headwater:
    return unconnected.headwater


def told(typed: Headwater, file: Path, *answers: tuple[bytes, bytes], words=()) -> tuple[int, dict[str, Any], str]:
    """Ask by the definition at a terminal; return the status, the result or the error's data, and what was shown."""
    line = ["invoke", "--definition", str(file), *ASK, *words]
    status, printed, shown = answer_at_terminal(typed, *line, answers=list(answers))
    answer = json.loads(printed)
    return status, answer["result"] if answer["ok"] else answer["error"]["data"], shown.decode()


def held(desk: Desk, instance: str) -> list[Connection]:
    with opened(desk.headwater.state / "headwater.db") as registry:
        return registry.held(os.geteuid(), f"shop.{instance}")


def acquisition(desk: Desk) -> dict[str, Any]:
    """Return the newest acquisition of the definition's instance, as `connections status` tells it."""
    with apsw.Connection(str(desk.headwater.state / "headwater.db")) as database:
        newest = "SELECT max(reference) FROM acquisitions WHERE instance_id = 'shop.definition'"
        reference = database.execute(newest).get
    words = ("connections", "status", "shop/definition", "--acquisition", str(reference))
    return dict(desk.headwater.type(*words).result["acquisition"])


def in_the_middle(desk: Desk, act: Callable[[], object], reply: Reply | None = None) -> None:
    """Do something when the provider is asked whose the copied credential is, and answer after that."""

    def answer(asked: Asked) -> Reply:
        del desk.replies["/whoami"]
        act()
        return whoami(asked) if reply is None else reply

    desk.replies["/whoami"] = answer


class TestOffering:
    @pytest.mark.clause("CLI-1080", "CLI-1083", "CLI-1084", "CLI-1086", "CLI-1090")
    def test_a_number_reuses_a_credential_and_the_two_share_nothing(self, unconnected, typed, file):
        (before,) = held(unconnected, "me")
        status, result, shown = told(typed, file, (ONE, b"1\n"))
        assert (status, result["instance"], result["result"]["status"]) == (0, "definition", 200)
        (line,) = (line for line in shown.splitlines() if line.startswith("   1  "))
        assert line.split() == ["1", "shop/me", unconnected.running.url, "user", "anna"]
        assert (TOKEN in shown, before.reference in shown) == (False, False)
        (source,), (copy,) = held(unconnected, "me"), held(unconnected, "definition")
        assert source == before
        assert (copy.identity, copy.version == source.version) == (source.identity, False)
        assert (acquisition(unconnected)["state"], acquisition(unconnected)["connection"]) == (
            "completed", copy.reference
        )  # fmt: skip
        assert typed.type("connections", "revoke", "shop/definition", "--expected-revision", "1").status == 0
        assert typed.type("invoke", "shop/me", *ASK).result["result"]["status"] == 200

    @pytest.mark.clause("CLI-1090")
    def test_revoking_the_source_leaves_the_copy(self, unconnected, typed, file):
        assert told(typed, file, (ONE, b"1\n"))[0] == 0
        assert typed.type("connections", "revoke", "shop/me", "--expected-revision", "1").status == 0
        again = typed.type("invoke", "--definition", str(file), *ASK)
        assert (again.result["result"]["status"], again.stderr) == (200, "")

    @pytest.mark.clause("CLI-1084")
    @pytest.mark.parametrize("said", [b"c\n", b"CONNECT\n"])
    def test_c_connects_afresh(self, unconnected, typed, file, entry, said):
        assert told(typed, file, (ONE, said), words=entry)[0] == 0
        assert len(held(unconnected, "definition")) == 1
        assert not (typed.state / "owner.lock").exists()

    @pytest.mark.clause("CLI-1084")
    @pytest.mark.parametrize("said", [b"x\n", b"\n", b"y\n", b"2\n", b"0\n", b"01\n", b"\x04"])
    def test_anything_else_copies_nothing(self, unconnected, typed, file, said):
        status, data, _ = told(typed, file, (ONE, said))
        assert (status, data["code"], data["stage"], data["next_action"]) == (
            1, "not_found", "admission", "create_connection"
        )  # fmt: skip
        assert unconnected.running.asked == []
        assert not (typed.state / "owner.lock").exists()

    @pytest.mark.clause("CLI-1084", "CLI-1080")
    def test_without_a_terminal_nothing_is_offered(self, unconnected, typed, file):
        answer = typed.type("invoke", "--definition", str(file), *ASK)
        assert failure(answer) == ("not_found", "admission", "create_connection", None)
        assert unconnected.running.asked == []

    @pytest.mark.clause("CLI-1083")
    def test_of_twenty_sixteen_are_listed(self, unconnected, typed, file):
        names = [f"i{number:02}" for number in range(19)]
        tables = "".join(f'[connectors.shop.instances.{n}]\nendpoint = "{unconnected.running.url}"\n' for n in names)
        unconnected.configure(f"\n{tables}")
        folder = f'folder = "{typed.place}/connector"\n'
        with (typed.place / "collect.toml").open("a") as collect:
            collect.write("".join(f'[instances."shop/{name}"]\n{folder}' for name in names))
        for name in names:
            unconnected.connect(name)
        status, _, shown = told(typed, file, (b"[1-16/c/N] ", b"16\n"))
        assert status == 0
        assert [line.split()[1] for line in shown.splitlines() if line.startswith("  ")] == [
            "shop/me", *(f"shop/{name}" for name in names[:15])
        ]  # fmt: skip


class TestCopying:
    @pytest.mark.clause("CLI-1087", "CLI-1088")
    def test_a_source_that_is_revoked_in_the_middle(self, unconnected, typed, file):
        in_the_middle(unconnected, lambda: unconnected.host.connecting.revoke(SELECTION, None, "1"))
        status, data, shown = told(typed, file, (ONE, b"1\n"), (INSTEAD, b"\n"))
        assert (status, data["code"], data["next_action"]) == (1, "revoked", "create_connection")
        assert shown.count("[y/N]") == 1
        assert held(unconnected, "definition") == []
        assert (acquisition(unconnected)["state"], acquisition(unconnected)["acquisition"]) == (
            "failed", data["acquisition"]
        )  # fmt: skip

    @pytest.mark.clause("CLI-1087", "CLI-1090")
    def test_a_source_that_is_revalidated_in_the_middle(self, unconnected, typed, file):
        def revalidate() -> None:
            asyncio.run(unconnected.host.connecting.revalidate(SELECTION, None, "1"))

        in_the_middle(unconnected, revalidate)
        status, data, _ = told(typed, file, (ONE, b"1\n"), (INSTEAD, b"n\n"))
        assert (status, data["code"]) == (1, "lifecycle_conflict")
        assert (held(unconnected, "definition"), held(unconnected, "me")[0].lifecycle) == ([], "live")

    @pytest.mark.clause("CLI-1088", "CLI-1090")
    def test_another_account_answers(self, unconnected, typed, file):
        (before,) = held(unconnected, "me")
        in_the_middle(unconnected, lambda: None, Reply(body={"id": "bert"}))
        status, data, _ = told(typed, file, (ONE, b"1\n"), (INSTEAD, b"n\n"))
        assert (status, data["code"], data["stage"], data["next_action"]) == (
            1, "identity_mismatch", "admission", "create_connection"
        )  # fmt: skip
        assert (held(unconnected, "definition"), held(unconnected, "me")) == ([], [before])

    @pytest.mark.clause("CLI-1088", "CLI-1090")
    def test_a_credential_that_is_refused_and_then_a_fresh_one(self, unconnected, typed, file, entry):
        """The source is not cut off by it: that was another request than its own."""
        (before,) = held(unconnected, "me")
        in_the_middle(unconnected, lambda: None, Reply(status=401))
        status, result, _ = told(typed, file, (ONE, b"1\n"), (INSTEAD, b"y\n"), words=entry)
        assert (status, result["result"]["status"]) == (0, 200)
        assert (len(held(unconnected, "definition")), held(unconnected, "me")) == (1, [before])

    @pytest.mark.clause("CLI-1088")
    def test_the_failure_of_the_copy_is_told_where_nothing_else_is_wanted(self, unconnected, typed, file):
        in_the_middle(unconnected, lambda: None, Reply(status=503))
        status, data, _ = told(typed, file, (ONE, b"1\n"), (INSTEAD, b"\n"))
        assert (status, data["code"], acquisition(unconnected)["state"]) == (1, "unavailable", "failed")

    @pytest.mark.clause("CLI-1089", "CLI-1086", "CLI-1090")
    def test_an_owner_that_is_killed_in_the_middle(self, unconnected, typed, file):
        """Nothing is offered or usable, and the source is what it was; then a copy is admitted at once."""
        (before,) = held(unconnected, "me")
        in_the_middle(unconnected, lambda: end_owner(typed.state))
        status, data, shown = told(typed, file, (ONE, b"1\n"))
        assert (status, data["code"], data["next_action"]) == (1, "outcome_unknown", "retry_status")
        assert "[y/N]" not in shown
        assert (held(unconnected, "definition"), held(unconnected, "me")) == ([], [before])
        assert told(typed, file, (ONE, b"1\n"))[0] == 0

    @pytest.mark.clause("CLI-1089")
    def test_whoever_interrupts_is_offered_nothing_more(self, unconnected, typed, file):
        import signal

        from signin.terminal import terminal

        with terminal(typed.words("invoke", "--definition", str(file), *ASK)[1:]) as session:
            in_the_middle(unconnected, lambda: session.process.send_signal(signal.SIGINT))
            session.until(ONE)
            session.type(b"1\n")
            session.process.communicate(timeout=60)
            session.rest()
            assert (session.process.returncode, b"[y/N]" in session.shown) == (130, False)

    @pytest.mark.clause("CLI-1086")
    def test_while_another_connect_is_under_way_nothing_is_copied(self, unconnected, typed, file):
        from headwater.store.turns import ConnectionTurns

        turns = ConnectionTurns(typed.state / "locks" / "connections")
        with turns.connecting("shop.definition") as alone:
            status, data, _ = told(typed, file, (ONE, b"1\n"), (INSTEAD, b"n\n"))
        assert (alone, status, data["code"], unconnected.running.asked) == (True, 1, "lifecycle_conflict", [])


class TestSources:
    """Each condition of a connection that may be copied, dropped once."""

    @pytest.fixture
    def offers(self, unconnected: Desk, file: Path) -> Callable[[], list[Source]]:
        """Return what is offered to the definition as it is now."""
        defining = unconnected.host.defining(file, None)
        with defining.recorded(defining.named(None)):
            pass
        return lambda: unconnected.host.reusing.offers(unconnected.host.connecting.target(DEFINITION))

    @pytest.fixture
    def change(self, unconnected: Desk) -> Callable[..., None]:
        """Change what is stored of the source."""

        def change(**members: Any) -> None:
            with opened(unconnected.headwater.state / "headwater.db") as registry:
                (now,) = registry.held(os.geteuid(), "shop.me")
                changes = {name: made(getattr(now, name)) for name, made in members.items()}
                assert registry.publish(now, replace(now, **changes), 0)

        return change

    @pytest.mark.clause("CLI-1081", "CLI-1085")
    @pytest.mark.parametrize(
        "members",
        [
            {"lifecycle": lambda _: "stale"},
            {"lifecycle": lambda _: "revoked"},
            {"evidence": lambda now: replace(now, collected_at_ms=1, valid_until_ms=2)},
            {"evidence": lambda now: replace(now, credential_expires_at_ms=1)},
            {"evidence": lambda now: replace(now, checks={**now.checks, "credential_present": "missing"})},
            {"evidence": lambda now: replace(now, checks={**now.checks, "credential_valid": "invalid"})},
            {"evidence": lambda now: replace(now, checks={**now.checks, "custody_reachable": "unavailable"})},
            {"binding": lambda now: replace(now, authority="https://other.example")},
            {"binding": lambda now: replace(now, authentication="0" * 64)},
            {"binding": lambda now: replace(now, declaration="0" * 64)},
            {"binding": lambda now: replace(now, executable="declared/0")},
            {"binding": lambda now: replace(now, configuration_revision="0" * 64)},
            {"binding": lambda now: replace(now, credential_revision="0" * 64, configuration_revision="0" * 64)},
            {"profile": lambda _: "other"},
        ],
    )
    def test_what_is_stored_of_it(self, offers, change, members):
        (source,) = offers()
        assert source.target.name == "shop/me"
        change(**members)
        assert offers() == []

    @pytest.mark.clause("CLI-1081", "CLI-1085", "CLI-1078")
    @pytest.mark.parametrize(
        ("old", "new", "question"),
        [
            ("Desk", "Another title", ONE),
            ("127.0.0.1", "localhost", INSTEAD),
            ('prefix = "Bearer"', 'prefix = "Token"', INSTEAD),
            ('"/id"', '"/login"', INSTEAD),
            ('key = "api_token"', 'key = "token"', INSTEAD),
            ('id = "shop"', 'id = "desk"', INSTEAD),
        ],
    )
    def test_what_the_definition_says(self, unconnected, typed, file, old, new, question):
        text = file.read_text().replace('title = "Desk"', 'id = "shop"\ntitle = "Desk"')
        file.write_text(text.replace('scheme = "token"', 'scheme = "token"\nprefix = "Bearer"').replace(old, new))
        status, data, _ = told(typed, file, (question, b"\n"))
        assert (status, data["code"], unconnected.running.asked) == (1, "not_found", [])

    @pytest.mark.clause("CLI-1081")
    def test_what_is_configured_of_it(self, unconnected, offers):
        assert len(offers()) == 1
        unconnected.configure('permissions = { profiles = ["api_token"], operations = [] }\n')
        assert offers() == []
        unconnected.configure()
        assert len(offers()) == 1
        unconnected.configure("[connectors.shop]\nenabled = false\n[connectors.shop.instances.other]\n")
        assert offers() == []

    @pytest.mark.clause("CLI-1085")
    def test_nothing_below_a_mounted_folder(self, unconnected, typed, offers):
        mounted = typed.place / "mounted"
        mounted.mkdir(mode=0o700)
        assert len(offers()) == 1
        unconnected.configure(head=f'[custody]\nbinding = "mounted_secret"\ndirectory = "{mounted}"\n')
        assert offers() == []

    @pytest.mark.clause("CLI-1086")
    def test_the_owner_makes_every_check_again(self, unconnected, offers, change):
        """Neither what is no longer a source is copied, nor for a definition that is another one meanwhile."""
        (source,) = offers()
        target = unconnected.host.connecting.target(DEFINITION)
        wanted = source.connection.reference
        with pytest.raises(HeadwaterError) as other:
            unconnected.host.handing.copy(replace(target, configuration_revision="0" * 64), wanted)
        change(lifecycle=lambda _: "stale")
        with pytest.raises(HeadwaterError) as stale:
            unconnected.host.handing.copy(target, wanted)
        me = unconnected.host.connecting.target(SELECTION)
        with pytest.raises(HeadwaterError) as configured:
            unconnected.host.handing.copy(me, wanted)
        codes = [caught.value.code for caught in (other, stale, configured)]
        assert codes == ["lifecycle_conflict", "lifecycle_conflict", "unsupported"]
        assert (unconnected.running.asked, held(unconnected, "definition")) == ([], [])
