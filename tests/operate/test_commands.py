"""`headwater operations` and `headwater invoke`, as they are typed."""

import json
import os
import pty
import subprocess

import pytest
from journeys.conftest import Headwater
from operate.desk import HEAD
from signin.provider import Reply

DEEP = "[" * 127 + "]" * 127


def parse_refusal(answer) -> str:
    """Return the code of a refusal of the command line itself."""
    assert (answer.status, answer.stdout) == (2, "")
    error = json.loads(answer.stderr)["error"]
    assert error["data"] == {}
    return error["code"]


class TestOperations:
    @pytest.mark.clause("CLI-260", "CLI-269", "CLI-270", "CLI-272")
    def test_a_list_is_of_what_is_permitted_and_starts_nothing(self, unconnected):
        page = unconnected.headwater.type("operations", "list", "shop/me").result
        assert [one["id"] for one in page["operations"]] == ["orders.cancel", "orders.list", "orders.show"]
        labels = {name: page[name] for name in ("adapter", "connector", "instance", "source", "stale")}
        assert labels == {
            "adapter": "shop.me", "connector": "shop", "instance": "me", "source": "configuration", "stale": False
        }  # fmt: skip
        assert len(page["revision"]) == 64
        assert unconnected.running.asked == []
        assert not (unconnected.headwater.state / "owner.sock").exists()

    def test_a_person_reads_the_names_and_what_each_takes(self, unconnected):
        human = Headwater(unconnected.headwater.place, "human")
        lines = human.type("operations", "list", "shop/me").stdout.splitlines()
        assert (lines[0].split()[0], lines[2].split()[0]) == ("operation", "orders.list")
        told = human.type("operations", "describe", "orders.list", "shop/me").stdout
        assert "\ntakes:\n  state (optional)\n  page (optional)\n" in told
        assert "\ntakes:\n  number\n" in human.type("invoke", "shop", "orders.show", "--describe").stdout

    @pytest.mark.clause("CLI-271", "CLI-040")
    def test_a_description_has_its_schemas_as_objects(self, unconnected):
        told = unconnected.headwater.type("operations", "describe", "orders.show", "shop/me").result
        assert told["operation"]["input_schema"]["required"] == ["number"]
        assert told["operation"]["output_schema"]["required"] == ["status", "body", "provenance"]
        assert len(told["schema"]) == 64

    @pytest.mark.clause("CLI-273", "CLI-275", "CLI-276", "CLI-285")
    def test_a_page_is_of_a_family_and_its_cursor_too(self, unconnected):
        rows = "".join(
            f'[operations.{name}]\ndescription = "It."\npath = "/{name}"\ncontract = "{family}"\n'
            for name, family in (("a", "x/v1"), ("b", "x/v1"), ("c", "x/v10"))
        )
        unconnected.define(HEAD + rows)
        listing = ["operations", "list", "shop/me"]
        first = unconnected.headwater.type(*listing, "--family", "x/v1", "--limit", "1").result
        assert [one["id"] for one in first["operations"]] == ["a"]
        behind = ["--cursor", first["next_cursor"]]
        rest = unconnected.headwater.type(*listing, "--family", "x/v1", *behind).result
        assert ([one["id"] for one in rest["operations"]], "next_cursor" in rest) == (["b"], False)
        assert unconnected.headwater.type(*listing, "--family", "x/v2", *behind).failure["code"] == "stale_cursor"
        assert unconnected.headwater.type(*listing, "--family", "none").result["operations"] == []
        for wrong in (
            ["--family", "a b"],
            ["--family", ""],
            ["--family", "x" * 129],
            ["--limit", "0"],
            ["--limit", "501"],
        ):
            assert unconnected.headwater.type(*listing, *wrong).failure["code"] == "invalid_input"

    @pytest.mark.clause("CLI-261", "CLI-266", "CLI-286")
    def test_an_instance_that_was_stopped_is_not_described(self, desk, typed):
        from headwater.store.sqlite.owner_records import OwnerRecords

        OwnerRecords(desk.headwater.state / "headwater.db", os.geteuid()).suppress("shop.me", suppressed=True)
        for words in (["operations", "list", "shop/me"], ["invoke", "shop", "orders.list", "--input-json", "{}"]):
            failure = typed.type(*words).failure
            assert (failure["code"], failure["stage"]) == ("description_unavailable", "observation")
        assert desk.paths == []
        assert typed.type("connections", "revalidate", "shop/me", "--expected-revision", "1").status == 0
        assert typed.type("invoke", "shop", "orders.list", "--input-json", "{}").status == 0

    @pytest.mark.clause("CLI-261")
    def test_without_its_database_nothing_is_described(self, desk, typed):
        (typed.state / "headwater.db").write_bytes(b"no database" * 1000)
        failure = typed.type("operations", "list", "shop/me").failure
        assert (failure["code"], failure["stage"]) == ("metadata_unavailable", "observation")


class TestInvoke:
    @pytest.mark.clause("CLI-550", "CLI-554", "CLI-558", "CLI-566", "CLI-582", "CLI-343")
    def test_a_connector_and_an_operation_are_enough(self, desk, typed):
        answer = typed.type("invoke", "shop", "orders.list", "--input-json", '{"state": "open"}').result
        assert answer["result"]["body"] == [{"number": "1", "item": "tea"}]
        assert desk.paths == ["/orders?state=open"]

    @pytest.mark.clause("CLI-568")
    def test_the_input_comes_from_an_argument_a_file_or_stdin(self, desk, typed):
        file = desk.headwater.place / "input.json"
        file.write_text('{"state":"open"}')
        for words, stdin in (
            (["--input-json", '{"state":"open"}'], ""),
            (["--input-file", str(file)], ""),
            (["--input-stdin"], ' {"state":"open"}\n'),
            ([], '{"state":"open"}'),
        ):
            assert typed.type("invoke", "shop/me", "orders.list", *words, stdin=stdin).status == 0
        assert desk.paths == ["/orders?state=open"] * 4

    @pytest.mark.clause("CLI-569", "CLI-579")
    def test_a_terminal_is_not_read(self, desk, typed):
        ours, theirs = pty.openpty()
        run = subprocess.run(
            typed.words("invoke", "shop", "orders.list"), stdin=theirs, capture_output=True, timeout=30, check=False
        )
        os.close(ours)
        os.close(theirs)
        data = json.loads(run.stderr)["error"]["data"]
        assert (run.returncode, data["code"], data["field"]) == (2, "invalid_input", "input")
        assert desk.paths == []

    @pytest.mark.clause("CLI-019", "CLI-021")
    @pytest.mark.parametrize(
        "text",
        ["", "{", '{"state":"a","state":"b"}', "{} {}", '[{"b":1,"b":2}]', "[" * 128 + "]" * 128, "NaN"],
    )
    def test_what_is_not_one_json_value_is_refused_by_the_command_line(self, desk, typed, text):
        assert parse_refusal(typed.type("invoke", "shop", "orders.list", "--input-json", text)) == "cli_dynamic_input"
        assert desk.paths == []

    @pytest.mark.clause("CLI-021", "CLI-585")
    def test_what_is_one_and_does_not_fit_is_refused_by_the_operation(self, desk, typed):
        for text in (DEEP, '"{}"', '{"state":"gone"}'):
            failure = typed.type("invoke", "shop", "orders.list", "--input-json", text).failure
            assert (failure["code"], failure["field"]) == ("invalid_input", "input")
        for size, code in ((1 << 20, "cli_dynamic_input"), ((1 << 20) + 1, "failure")):
            answer = typed.type("invoke", "shop", "orders.list", stdin=" " * size)
            assert json.loads(answer.stderr)["error"]["code"] == code
        assert desk.paths == []

    @pytest.mark.clause("CLI-551", "CLI-016")
    @pytest.mark.parametrize("flag", ["--adapter", "--connector", "--instance", "--endpoint"])
    def test_the_target_says_all_there_is_to_say(self, typed, flag):
        assert parse_refusal(typed.type("invoke", "shop", "orders.list", flag, "x")) == "cli_parse"

    @pytest.mark.clause("CLI-552", "CLI-576", "CLI-248")
    @pytest.mark.parametrize(
        "words",
        [[], ["x"], ["x", "y", "z"], *([name, "x"] for name in ("", "a/b/c", "sentinel b", "x" * 129, "shop/", "é"))],
    )
    def test_what_is_no_target_is_refused_and_not_repeated(self, typed, words):
        answer = typed.type("invoke", *words, "--input-json", "{}")
        assert (answer.failure["code"], answer.failure["field"]) == ("invalid_input", "target")
        assert "sentinel" not in answer.stderr

    @pytest.mark.clause("CLI-555", "CLI-586", "CLI-248")
    @pytest.mark.parametrize("target", ["gone", "shop/gone", "a.b/c"])
    def test_what_is_not_configured_is_not_found_before_the_input_is_read(self, typed, target):
        failure = typed.type("invoke", target, "orders.list", "--input-json", "{").failure
        assert (failure["code"], failure["stage"], failure["next_action"]) == (
            "not_found", "admission", "check_configuration"
        )  # fmt: skip

    @pytest.mark.clause("CLI-556", "CLI-557")
    def test_of_several_instances_one_has_to_be_named(self, desk, typed):
        desk.configure("\n[connectors.shop.instances.also]\n")
        failure = typed.type("invoke", "shop", "orders.list", "--input-json", "{}").failure
        assert (failure["code"], failure["stage"], failure["next_action"]) == (
            "instance_ambiguous",
            "arguments",
            "none",
        )
        assert failure["instances"] == ["shop/also", "shop/me"]
        assert typed.type("invoke", "shop/me", "orders.list", "--input-json", "{}").status == 0

    @pytest.mark.clause("CLI-571", "CLI-573", "CLI-043")
    @pytest.mark.parametrize("flag", [["--describe"], ["--describe", "true"], ["--describe=true"]])
    def test_describing_asks_nothing_and_needs_no_connection(self, unconnected, flag):
        told = unconnected.headwater.type("invoke", "shop", "orders.show", *flag).result
        assert told.keys() == {
            "connector", "instance", "operation", "description", "effect", "schema", "revision", "input_schema"
        }  # fmt: skip
        assert (told["effect"], told["input_schema"]["required"]) == ("read", ["number"])
        pinned = unconnected.headwater.type("invoke", "shop", "orders.show", *flag, "--revision", "0" * 64)
        assert pinned.failure["code"] == "stale_description"
        assert unconnected.running.asked == []

    @pytest.mark.clause("CLI-575")
    @pytest.mark.parametrize("flag", ["--approval-file", "--idempotency-key"])
    def test_a_read_takes_no_approval(self, desk, typed, flag):
        failure = typed.type("invoke", "shop", "orders.list", flag, "x", "--input-json", "{}").failure
        assert (failure["code"], failure["field"]) == ("invalid_input", flag[2:].replace("-", "_"))
        assert desk.paths == []

    @pytest.mark.clause("CLI-587")
    @pytest.mark.parametrize(
        ("milliseconds", "status"), [("0", 2), ("-1", 2), ("120001", 2), ("120000", 0), ("20000", 0)]
    )
    def test_a_deadline_is_up_to_two_minutes(self, typed, milliseconds, status):
        words = ["invoke", "shop", "orders.list", "--input-json", "{}", "--deadline-ms", milliseconds]
        assert typed.type(*words).status == status

    @pytest.mark.clause("CLI-044")
    def test_a_person_reads_the_answer_as_indented_json(self, desk, typed):
        answer = Headwater(typed.place, "human").type("invoke", "shop", "orders.list", "--input-json", "{}")
        assert json.loads(answer.stdout)["body"] == [{"number": "1", "item": "tea"}]
        assert '  "status": 200,\n' in answer.stdout

    @pytest.mark.clause("CLI-011")
    def test_nothing_of_a_credential_or_a_refusal_of_the_provider_is_shown(self, desk, typed):
        desk.replies["/orders"] = Reply(status=403, body={"detail": "sentinel-of-the-provider"})
        answer = typed.type("invoke", "shop", "orders.list", "--input-json", '{"state":"open"}')
        assert answer.failure["code"] == "forbidden"
        assert "sentinel" not in answer.stderr
        assert "token-of-anna" not in answer.stderr


@pytest.mark.clause("CLI-588")
@pytest.mark.parametrize(
    "options",
    [
        [("--credential-file", "/x"), ("--definitions-root", "/x")],
        [("--max-pages", "0"), ("--fields", "]"), ("--out", "/x")],
        [("--each", "a[]"), ("--max-pages", "5")],
        [("--walk", "true"), ("--describe", "true"), ("--fields", "a,a")],
        [("--out", ""), ("--credential-file", "")],
    ],
)
def test_of_several_options_that_do_not_fit_the_first_is_named(unconnected, options):
    for order in (options, options[::-1]):
        wrong = [name for name, _ in order if name != "--describe"]
        words = [word for option in order for word in option]
        failure = unconnected.headwater.type("invoke", "shop", "orders.list", *words).failure
        assert (failure["code"], failure["field"]) == ("invalid_input", wrong[0].strip("-").replace("-", "_"))
