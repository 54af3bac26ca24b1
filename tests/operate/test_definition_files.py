"""`headwater invoke --definition`: a service that no configuration names, asked by a file."""

import json
import os
import select
from pathlib import Path

import pytest
from connectors.connecting import written
from journeys.conftest import Headwater
from operate.desk import TOKEN, Desk
from signin.provider import Reply
from signin.terminal import terminal

from headwater.errors import HeadwaterError
from headwater.manifest.provider_definition import examine_provider

AUTH = """
key = "token"
label = "Token"
flow = "token"
scheme = "token"
fields = [{ name = "token", label = "Token", type = "token", required = true }]
identity = { source = "api", kind = "user", path = "/whoami", subject = "/id" }
"""
ASK = ("orders.list", "--input-json", "{}")


def definition(url: str, *, auth: str = f"[[auth.methods]]{AUTH}", more: str = "", title: str = "Desk") -> str:
    """Return a definition of the shop."""
    return f"""
format = "connectors-definition/1"
title = "{title}"
base_url = "{url}"
{more}

[operations."orders.list"]
description = "What was ordered."
path = "/orders"

[operations."orders.cancel"]
description = "Cancel all."
effect = "write"
method = "POST"
path = "/cancel"

{auth}
"""


@pytest.fixture
def file(unconnected: Desk) -> Path:
    """The definition of a service that runs, in a file of its own below a root."""
    folder = unconnected.headwater.place / "root" / "desk"
    folder.mkdir(parents=True)
    path = folder / "desk.toml"
    path.write_text(definition(unconnected.running.url))
    return path


@pytest.fixture
def typed(unconnected: Desk) -> Headwater:
    """Its command line."""
    return unconnected.headwater


@pytest.fixture
def entry(typed: Headwater) -> list[str]:
    """The flag that enters the credential by a protected file."""
    return ["--credential-file", str(written(typed.place, "entry.json", json.dumps({"token": TOKEN})))]


def answer_at_terminal(typed: Headwater, *words: str, answers: list[tuple[bytes, bytes]]) -> tuple[int, str, bytes]:
    """Type a command at a terminal and answer what it asks; return its status, what it printed, and what was shown."""
    with terminal(typed.words(*words)[1:]) as session:
        for asked, said in answers:
            session.until(asked)
            session.type(said)
        out, err = session.process.communicate(timeout=60)
        session.rest()
        return session.process.returncode, (out or err).decode(), session.shown


def connected(typed: Headwater, file: Path, entry: list[str], *words: str) -> dict:
    """Ask by a definition, and say yes to the question whether to connect."""
    answers = [(b"now? [y/N] ", b"y\n")]
    status, printed, _ = answer_at_terminal(
        typed, "invoke", "--definition", str(file), *ASK, *entry, *words, answers=answers
    )
    assert status == 0, printed
    return json.loads(printed)["result"]


@pytest.mark.clause("CLI-567", "CLI-1054")
def test_what_is_described_of_a_file_is_what_it_is_asked_by(typed, file, entry):
    row = (
        f"\n[operations.big]\ndescription = 'B.'\npath = '/b'\nparams.a = {{ type = 'integer', maximum = {10**30} }}\n"
    )
    file.write_text(file.read_text() + row)
    told = typed.type("invoke", "--definition", str(file), "orders.list", "--describe").result
    connected(typed, file, entry, "--schema", told["schema"], "--revision", told["revision"])
    name = f"desk/{told['instance']}"
    assert typed.type("operations", "describe", "orders.list", name).result["schema"] == told["schema"]


def test_what_was_lowered_and_cannot_be_read_is_lowered_again(typed, file, entry):
    connected(typed, file, entry)
    (lowered,) = (typed.state / "definitions").glob("*/definition.json")
    lowered.write_text("{")
    assert typed.type("invoke", "--definition", str(file), *ASK).status == 0


@pytest.mark.clause("CLI-683")
def test_a_file_for_records_that_is_there_is_refused_before_anything_is_connected(unconnected, typed, file):
    ends = 'ends = [{ name = "end", pointer = "/n", absent = true }]'
    walk = f'params.cursor = {{}}\nwalk = {{ param = "cursor", next = "/n", records = "", {ends} }}\n'
    file.write_text(file.read_text().replace('path = "/orders"\n', f'path = "/orders"\n{walk}'))
    with terminal(typed.words("invoke", "--definition", str(file), *ASK, "--walk", "--out", str(file))[1:]) as session:
        _, told = session.process.communicate(timeout=30)
        session.rest()
    assert json.loads(told)["error"]["data"]["field"] == "out"
    assert (session.shown, unconnected.running.asked) == (b"", [])


def test_a_file_is_served_whatever_its_letters_take_as_escapes(typed, file, entry):
    output = f"output = {{ description = '{'漢' * 900_000}' }}"  # three bytes each, and six as an escape
    file.write_text(file.read_text().replace('path = "/orders"', f'path = "/orders"\n{output}'))
    assert connected(typed, file, entry)["operation"] == "orders.list"


def test_a_file_whose_lowering_could_not_be_read_is_refused_at_once(typed, file):
    newlines = "output.description = '''" + "\n" * 3_000_000 + "'''"  # one byte each, and two in JSON
    file.write_text(file.read_text().replace('path = "/orders"', f'path = "/orders"\n{newlines}'))
    assert typed.type("invoke", "--definition", str(file), *ASK).failure["field"] == "definition"
    assert not (typed.state / "definitions").exists()


def failure(answer) -> tuple[str, str, str, str | None]:
    """Return the code, stage, next action and field of a refusal."""
    data = answer.failure
    return data["code"], data["stage"], data["next_action"], data.get("field")


class TestConnecting:
    @pytest.mark.clause("CLI-1050", "CLI-1059", "CLI-1069", "CLI-1070", "CLI-1072", "CLI-1073", "CLI-1067", "CLI-1091")
    def test_it_is_connected_once_and_asked_from_then_on(self, unconnected, typed, file, entry):
        before = (typed.place / "config.toml").read_bytes()
        told = connected(typed, file, entry)
        assert (told["connector"], told["instance"]) == ("desk", "definition")
        assert told["result"]["body"] == [{"number": "1", "item": "tea"}]
        ask = ["invoke", "--definition", str(file)]
        again = typed.type(*ask, *ASK)
        assert (again.result["result"]["status"], again.stderr) == (200, "")
        assert unconnected.paths == ["/orders", "/orders"]
        assert (typed.place / "config.toml").read_bytes() == before
        (connection,) = typed.type("connections", "list", "desk/definition").result["connections"]
        assert (connection["adapter"], connection["state"]) == ("desk.definition", "ready")
        assert (
            typed.type("invoke", "--definition", str(file), *ASK, "--connection", connection["connection"]).status == 0
        )
        write = typed.type("invoke", "--definition", str(file), "orders.cancel", "--input-json", "{}")
        assert failure(write) == ("approval_required", "admission", "none", None)

    @pytest.mark.clause("CLI-1070")
    def test_the_token_may_be_typed(self, typed, file):
        answers = [(b"now? [y/N] ", b"YES\n"), (b"Token (not shown): ", TOKEN.encode() + b"\n")]
        status, printed, shown = answer_at_terminal(typed, "invoke", "--definition", str(file), *ASK, answers=answers)
        assert (status, json.loads(printed)["ok"], TOKEN.encode() in shown) == (0, True, False)

    @pytest.mark.clause("CLI-1069", "CLI-1071")
    @pytest.mark.parametrize("said", [b"\n", b"n\n", b"yesss\n", b"\x04", b"1\n"])
    def test_whatever_is_no_yes_acquires_nothing(self, unconnected, typed, file, entry, said):
        words = ["invoke", "--definition", str(file), *ASK, *entry]
        status, printed, _ = answer_at_terminal(typed, *words, answers=[(b"now? [y/N] ", said)])
        data = json.loads(printed)["error"]["data"]
        assert (status, data["code"], data["stage"], data["next_action"]) == (
            1, "not_found", "admission", "create_connection"
        )  # fmt: skip
        assert unconnected.running.asked == []

    @pytest.mark.clause("CLI-1071")
    def test_without_a_terminal_nobody_is_asked(self, unconnected, typed, file, entry):
        asked = typed.type("invoke", "--definition", str(file), *ASK, *entry)
        assert failure(asked) == ("not_found", "admission", "create_connection", None)
        assert unconnected.running.asked == []

    def test_an_input_that_does_not_fit_is_told_before_the_question(self, typed, file):
        words = ["invoke", "--definition", str(file), "orders.list", "--input-json", '{"x":1}']
        assert failure(typed.type(*words))[3] == "input"

    def test_the_rest_of_a_long_answer_is_no_command_for_the_shell_behind(self, typed, file):
        with terminal(typed.words("invoke", "--definition", str(file), *ASK)[1:]) as session:
            session.until(b"now? [y/N] ")
            session.type(b"no, thanks, rather not; rm everything\n")
            assert session.process.wait(30) == 1
            assert not select.select([session.slave], [], [], 0)[0]

    @pytest.mark.clause("CLI-366")
    @pytest.mark.parametrize("source", [["--input-stdin"], ["--input-file", "/dev/stdin"], []])
    def test_one_stdin_is_not_for_two(self, unconnected, typed, file, source):
        words = ["invoke", "--definition", str(file), "orders.list", "--credential-file", "/dev/stdin"]
        answer = typed.type(*words, *source, stdin="{}")
        assert failure(answer) == ("invalid_input", "arguments", "none", "credential_file")


class TestFiles:
    @pytest.mark.clause("CLI-1092", "CLI-1054")
    def test_describing_keeps_nothing_and_asks_nobody(self, unconnected, typed, file):
        told = typed.type("invoke", "--definition", str(file), "orders.list", "--describe").result
        assert (told["connector"], told["instance"], told["effect"]) == ("desk", "definition", "read")
        assert not (typed.state / "definitions").exists()
        assert unconnected.running.asked == []
        pins = ["--schema", told["schema"], "--revision", "0" * 64]
        assert failure(typed.type("invoke", "--definition", str(file), *ASK, *pins))[0] == "stale_description"

    @pytest.mark.clause("CLI-1095")
    def test_toml_and_json_are_one(self, typed, file):
        import tomllib

        other = file.with_suffix(".json")
        other.write_text(json.dumps(tomllib.loads(file.read_text())))
        one, two = (
            typed.type("invoke", "--definition", str(path), "orders.list", "--describe").result
            for path in (file, other)
        )
        assert one == two

    @pytest.mark.clause("CLI-1057", "CLI-1093", "CLI-1058", "CLI-1060")
    @pytest.mark.parametrize(
        "change",
        [
            lambda text: "",
            lambda text: text.replace("connectors-definition/1", "connectors-definition/2"),
            lambda text: text.replace("127.0.0.1", "{host}"),
            lambda text: text.replace("http://127.0.0.1", "http://example.org"),
            lambda text: text.replace('scheme = "token"', ""),
            lambda text: text.replace("title", 'id = "a b"\ntitle'),
            lambda text: text.replace("title", 'catalog = "a/b"\ntitle'),
            lambda text: text.replace("[[auth", '[[auth.methods]]\nuse = "../entry.json"\n[[auth'),
        ],
    )
    def test_a_file_that_cannot_be_used_leaves_no_trace(self, unconnected, typed, file, change):
        file.write_text(change(file.read_text()))
        answer = typed.type("invoke", "--definition", str(file), *ASK)
        assert failure(answer) == ("invalid_input", "arguments", "none", "definition")
        assert not (typed.state / "definitions").exists()
        assert unconnected.running.asked == []

    @pytest.mark.clause("CLI-1057", "CLI-1060")
    def test_a_file_that_is_not_there_or_of_another_name_is_refused(self, typed, file):
        assert failure(typed.type("invoke", "--definition", str(file) + "x", *ASK))[3] == "definition"
        other = file.rename(file.with_name("a b.toml"))
        assert failure(typed.type("invoke", "--definition", str(other), *ASK))[3] == "definition"

    @pytest.mark.clause("CLI-1051")
    @pytest.mark.parametrize(
        ("target", "status"), [("desk", 0), ("desk/definition", 0), ("other", 2), ("desk/other", 2), ("desk/", 2)]
    )
    def test_a_target_has_to_agree(self, typed, file, target, status):
        answer = typed.type("invoke", "--definition", str(file), target, "orders.list", "--describe")
        assert answer.status == status
        assert status == 0 or failure(answer) == ("invalid_input", "arguments", "none", "target")

    @pytest.mark.clause("CLI-1052")
    @pytest.mark.parametrize("flag", ["--definitions-root", "--credential-file"])
    def test_what_is_for_a_definition_stands_with_one(self, typed, flag):
        answer = typed.type("invoke", "shop", "orders.list", flag, "x")
        assert failure(answer) == ("invalid_input", "arguments", "none", flag[2:].replace("-", "_"))

    @pytest.mark.clause("CLI-1058")
    def test_the_variables_of_a_base_url_have_defaults(self):
        text = definition("https://{name}.example.org", more='variables.name = { default = "acme" }')
        provider, faults = examine_provider(text.encode(), "desk", toml=True)
        assert (provider.base_url, faults) == ("https://acme.example.org", [])


class TestChecking:
    @pytest.mark.clause("CLI-1096")
    def test_what_is_wrong_is_told_with_its_place_and_what_is_not_is_in_order(self, typed, file):
        assert typed.type("definitions", "check", str(file)).result["faults"] == []
        file.write_text(file.read_text().replace('path = "/orders"', "").replace('scheme = "token"', 'scheme = "x"'))
        told = typed.type("definitions", "check", str(file))
        assert (told.status, told.failure["code"]) == (1, "not_conforming")
        places = [line.partition(":")[0] for line in told.failure["explanation"]]
        assert set(places) == {"/auth/methods/0/scheme", "/operations/orders.list/path"}
        assert typed.type("definitions", "check", str(file) + "x").status == 2


class TestCache:
    @pytest.mark.clause("CLI-1053", "CLI-1055", "CLI-1056", "CLI-1075")
    def test_an_entry_is_of_every_file_that_was_read(self, unconnected, typed, file, entry):
        shared = file.parent.parent / "auth" / "token.toml"
        shared.parent.mkdir()
        shared.write_text(AUTH)
        file.write_text(definition(unconnected.running.url, auth='[[auth.methods]]\nuse = "auth/token.toml"'))
        connected(typed, file, entry)
        cache = typed.state / "definitions"

        def entries() -> set[str]:
            return {path.name for path in cache.iterdir() if path.is_dir()}

        (first,) = entries()
        assert (cache / first / "definition.json").stat().st_mode & 0o777 == 0o600
        assert cache.stat().st_mode & 0o777 == 0o700
        ask = ["invoke", "--definition", str(file), *ASK]
        assert typed.type(*ask).status == 0
        assert entries() == {first}
        shared.write_text(AUTH.replace('label = "Token"\nflow', 'label = "A token"\nflow'))
        file.write_text(file.read_text().replace("What was ordered", "Orders"))
        assert typed.type(*ask, "--definitions-root", str(file.parent.parent)).status == 0
        assert len(entries()) == 2
        assert (typed.state / "definitions" / "instances.toml").read_text().count("[connectors.desk]") == 1

    @pytest.mark.clause("CLI-1061", "CLI-1075")
    def test_another_file_of_the_connector_takes_its_place(self, unconnected, typed, file, entry):
        connected(typed, file, entry)
        other = file.with_name("other.toml")
        other.write_text(definition(unconnected.running.url, more='id = "desk"', title="Another"))
        assert typed.type("invoke", "--definition", str(other), *ASK).result["connector"] == "desk"
        records = (typed.state / "definitions" / "instances.toml").read_text()
        assert records.count("[connectors.") == 1

    @pytest.mark.clause("CLI-1062", "CLI-936")
    @pytest.mark.parametrize("selects", ["orders.list", "no.such"])
    def test_another_file_that_takes_its_place_before_it_is_selected_is_told(self, unconnected, typed, file, selects):
        other = file.with_name("other.toml")
        other.write_text(definition(unconnected.running.url + "/other", more='id = "desk"'))
        host = unconnected.host
        ours, theirs = host.defining(file, None), host.defining(other, None)

        def raced():
            with ours.recorded("definition") as name:
                with theirs.recorded("definition"):
                    pass
                return host.operating.aimed(name, selects)

        with pytest.raises(HeadwaterError) as caught:
            raced()
        error = caught.value
        assert (error.code, error.stage, error.next_action) == ("revision_conflict", "publication", "retry_explicitly")
        with theirs.recorded("definition") as name:
            assert host.operating.aimed(name, "orders.list").target.endpoint.endswith("/other")
        assert unconnected.running.asked == []

    @pytest.mark.clause("CLI-1074", "CLI-1094")
    def test_of_several_connections_one_has_to_be_named(self, unconnected, typed, file, entry):
        connected(typed, file, entry)
        unconnected.connect()
        unconnected.another_connection()
        answer = typed.type("invoke", "--definition", str(file), *ASK)
        assert failure(answer) == ("invalid_input", "arguments", "none", "connection")

    @pytest.mark.clause("CLI-1066")
    def test_it_is_selected_like_others_and_listed_with_none(self, typed, file, entry):
        connected(typed, file, entry)
        page = typed.type("operations", "list", "desk/definition").result
        assert [one["id"] for one in page["operations"]] == ["orders.cancel", "orders.list"]
        assert typed.type("invoke", "desk", *ASK).status == 0
        listed = typed.type("instances", "list").result["instances"]
        assert [row["connector"] for row in listed] == ["shop"]
        assert "desk" not in typed.type("setup", "check").stdout

    @pytest.mark.clause("CLI-553")
    def test_an_instance_that_is_configured_has_the_name_before_one_that_is_recorded(self, typed, file, entry):
        connected(typed, file, entry)
        assert typed.type("invoke", "desk/definition", *ASK).status == 0
        config = typed.place / "config.toml"
        config.write_text(config.read_text() + "\n[connectors.desk.instances.definition]\n")
        told = typed.type("invoke", "desk/definition", *ASK)
        assert (told.status, told.failure["code"]) == (1, "not_found")
        assert "no such connector" in told.failure["message"]

    @pytest.mark.clause("CLI-1068")
    @pytest.mark.parametrize(
        "table",
        [
            "[connectors.desk.instances.definition]\n",
            '[connectors.shop.instances.other]\nalias = "desk.definition"\ninstance_id = "x"\n',
        ],
    )
    def test_an_instance_that_is_configured_is_not_replaced(self, unconnected, typed, file, table):
        unconnected.configure(f"\n{table}")
        answer = typed.type("invoke", "--definition", str(file), *ASK)
        assert failure(answer)[:3] == ("invalid_configuration", "configuration", "check_configuration")
        assert answer.failure["configuration_rule"] == "definition_instance_configured"
        assert not (typed.state / "definitions").exists()

    @pytest.mark.clause("CLI-1063", "CLI-1065")
    def test_a_record_that_is_not_ours_is_not_read_and_forgotten_ones_begin_anew(self, typed, file, entry):
        connected(typed, file, entry)
        records = typed.state / "definitions" / "instances.toml"
        before = records.read_text()
        records.write_text(before.replace('digest = "', 'digest = "../'))
        assert failure(typed.type("invoke", "desk", *ASK))[0] == "not_found"
        assert typed.type("invoke", "--definition", str(file), *ASK).status == 0
        assert records.read_text() == before

    def test_what_a_killed_command_left_is_gone_with_the_next(self, typed, file):
        cache = typed.state / "definitions"
        (cache / f".{'0' * 64}.abc").mkdir(parents=True)
        (cache / ".instances.toml.abc").touch()
        typed.type("invoke", "--definition", str(file), *ASK)
        assert sorted(path.name for path in cache.glob(".*")) == [".lock"]

    @pytest.mark.clause("CLI-1063")
    def test_at_most_64_connectors_are_recorded(self, typed, file):
        cache = typed.state / "definitions"
        typed.type("invoke", "--definition", str(file), *ASK)
        (digest,) = (path.name for path in cache.iterdir() if path.is_dir())
        rows = "".join(f'[connectors.c{n}]\ninstance = "definition"\ndigest = "{digest}"\n' for n in range(64))
        (cache / "instances.toml").write_text(f'format = "headwater-definitions/1"\n{rows}')
        answer = typed.type("invoke", "--definition", str(file), *ASK)
        assert failure(answer)[:3] == ("invalid_configuration", "configuration", "check_configuration")


class TestMoving:
    @pytest.mark.clause("CLI-1076", "CLI-1078")
    def test_another_service_is_another_instance_and_back_again(self, unconnected, typed, file, entry):
        connected(typed, file, entry)
        text = file.read_text()
        file.write_text(text.replace("127.0.0.1", "localhost"))
        moved = connected(typed, file, entry)["instance"]
        assert moved.startswith("definition-")
        assert len(moved) == len("definition-") + 16
        assert typed.type("invoke", "--definition", str(file), *ASK).result["instance"] == moved
        file.write_text(text)
        assert typed.type("invoke", "--definition", str(file), *ASK).result["instance"] == "definition"
        assert len(unconnected.paths) == 4

    @pytest.mark.clause("CLI-1078")
    def test_what_was_left_is_revoked_through_the_connector(self, unconnected, typed, file, entry):
        connected(typed, file, entry)
        (left,) = typed.type("connections", "list", "desk/definition").result["connections"]
        file.write_text(file.read_text().replace("127.0.0.1", "localhost"))
        moved = connected(typed, file, entry)["instance"]
        revoke = ["--connection", left["connection"], "--expected-revision", "1"]
        assert typed.type("connections", "revoke", "shop/me", *revoke).failure["code"] == "not_found"
        assert typed.type("connections", "revoke", f"desk/{moved}", *revoke).result["local_state"] == "revoked"


def test_a_refusal_of_the_service_is_told_as_for_any_instance(unconnected, typed, file, entry):
    """The credential is refused at the first check: nothing is connected, and the next command asks again."""
    unconnected.replies["/whoami"] = Reply(status=401)
    words = ["invoke", "--definition", str(file), *ASK, *entry]
    status, printed, _ = answer_at_terminal(typed, *words, answers=[(b"now? [y/N] ", b"y\n")])
    assert (status, json.loads(printed)["error"]["data"]["service_code"]) == (1, "unauthorized")
    assert os.listdir(typed.state / "definitions") != []
    assert typed.type(*words).failure["code"] == "not_found"
