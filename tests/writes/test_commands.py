"""`headwater approvals` and writes by `headwater invoke`, as they are typed."""

import json
import os
import stat

import pytest
from journeys.conftest import Headwater
from operate.desk import SELECTION
from operate.test_commands import parse_refusal
from signin.provider import Reply
from writes.shop import SHIP
from writes.signing import document_of
from writes.strict import strict_folder

from headwater.link.owner import Place, is_held

CANCEL = ["orders.cancel", "shop/me", "--input-json", '{"number":"7"}']
APPROVALS = ("key-init", "key-status", "key-rotate", "key-recover", "key-revoke", "key-retire")


def misfit(answer) -> str:
    """Return which argument a command did not take."""
    assert answer.status == 2
    assert (answer.failure["code"], answer.failure["stage"]) == ("invalid_input", "arguments")
    return answer.failure["field"]


@pytest.fixture
def private(shop):
    """A folder that only its owner can enter."""
    return strict_folder(shop.headwater.place)


def issued(shop, output, operation="orders.cancel", given='{"number":"7"}'):
    """Prepare and approve a write, and return what both told."""
    words = [operation, "shop/me", "--input-json", given]
    prepared = shop.headwater.type("approvals", "prepare", *words).result["preparation"]
    approved = ["--approve-subject", prepared["subject_sha256"], "--proof-output", str(output)]
    return prepared, shop.headwater.type("approvals", "issue", *words, *approved)


class TestTheThreeSteps:
    @pytest.mark.clause("CLI-700", "CLI-703", "CLI-704", "CLI-728", "CLI-729")
    def test_prepare_issue_and_invoke(self, shop, private):
        proof = private / "proof"
        asked = len(shop.running.asked)
        prepared, answer = issued(shop, proof)
        assert answer.result["disposition"] == "published"
        assert (len(shop.running.asked), is_held(Place.of(shop.headwater.state))) == (asked, False)
        written = json.loads(proof.read_text())
        assert written.keys() == {"reference", "evidence"}
        assert answer.result["reference"] == written["reference"]
        assert stat.S_IMODE(proof.stat().st_mode) == 0o600
        assert written["evidence"] not in answer.stdout
        words = ["invoke", "shop/me", "orders.cancel", "--input-json", '{"number":"7"}', "--approval-file", str(proof)]
        done = shop.headwater.type(*words)
        assert done.result["mutation"]["classification"] == "applied"
        assert prepared["presentation"]["request"] == {
            "method": "POST", "url": f"{shop.running.url}/orders/7/cancel"
        }  # fmt: skip
        again = shop.headwater.type(*words).failure
        assert (again["code"], again["next_action"], again["mutation"]["classification"]) == (
            "approval_replayed", "retry_status", "not_attempted"
        )  # fmt: skip

    def test_fields_shape_a_write_and_never_hide_what_became_of_it(self, shop, private):
        issued(shop, private / "proof")
        words = ["invoke", "shop/me", "orders.cancel", "--input-json", '{"number":"7"}', "--fields", "state"]
        told = shop.headwater.type(*words, "--approval-file", str(private / "proof")).result
        assert told["state"] == "cancelled"
        assert told["mutation"]["classification"] == "applied"
        assert told["source_audit"]["audit_status"] == "complete"

    @pytest.mark.clause("CLI-574")
    def test_without_an_approval_the_steps_are_named(self, shop):
        failure = shop.headwater.type("invoke", "shop/me", "orders.cancel", "--input-json", "{}").failure
        assert (failure["code"], failure["next_action"]) == ("approval_required", "none")
        assert failure["approval_steps"] == ["approvals prepare", "approvals clock-check", "approvals issue"]
        assert "mutation" not in failure
        human = Headwater(shop.headwater.place, "human")
        said = human.type("invoke", "shop/me", "orders.cancel", "--input-json", "{}").stderr
        assert "approvals prepare shop/me orders.cancel" in said

    @pytest.mark.clause("CLI-709")
    def test_without_a_key_nothing_is_sent(self, shop, private):
        issued(shop, private / "proof")
        seen = shop.host.approval_keys.status()["issuer"]
        words = ["--expected-revision", str(seen["revision"]), "--expected-key", seen["keys"][0]["key_id"]]
        assert shop.headwater.type("approvals", "key-revoke", *words).result["issuer"]["keys"][0]["state"] == "retired"
        failure = shop.headwater.type(
            "invoke", "shop/me", "orders.cancel", "--input-json", '{"number":"7"}',
            "--approval-file", str(private / "proof"), "--idempotency-key", "k",
        ).failure  # fmt: skip
        assert (failure["code"], failure["stage"], failure["next_action"]) == (
            "approval_refused", "admission", "retry_status"
        )  # fmt: skip
        assert shop.changes == []

    def test_a_person_sees_exactly_what_would_be_done(self, shop):
        human = Headwater(shop.headwater.place, "human")
        said = human.type("approvals", "prepare", "orders.ship", "shop/me", "--input-json", json.dumps(SHIP)).stdout
        assert f"request: PATCH {shop.running.url}/orders/7\n" in said
        assert '"state": "sent"' in said
        assert "only if etag is: v1" in said
        assert "approvals issue shop/me orders.ship --approve-subject" in said


class TestArguments:
    @pytest.mark.clause("CLI-022", "CLI-705")
    @pytest.mark.parametrize("document", ["{} x", "{", "", "[1,]", '{"a":1,"a":2}', "[" * 200])
    @pytest.mark.parametrize("command", ["prepare", "issue"])
    def test_a_document_that_is_no_single_one_is_the_applications_refusal(self, shop, command, document):
        words = ["approvals", command, "orders.cancel", "shop/me", "--input-stdin"]
        words += ["--approve-subject", "0" * 64, "--proof-output", "/x"] if command == "issue" else []
        assert misfit(shop.headwater.type(*words, stdin=document)) == "input"

    @pytest.mark.clause("CLI-702", "CLI-016")
    def test_one_input_is_taken_and_what_an_issue_needs_has_to_be_there(self, shop):
        one, file = ["--input-json", "{}"], ["--input-file", "/x"]
        assert parse_refusal(shop.headwater.type("approvals", "prepare", "orders.cancel", "shop/me")) == "cli_parse"
        for words in ([*one, *file], [*one, "--input-stdin"], [*file, "--input-stdin"]):
            answer = shop.headwater.type("approvals", "prepare", "orders.cancel", "shop/me", *words)
            assert parse_refusal(answer) == "cli_parse"
        for words in (["--approve-subject", "0" * 64], ["--proof-output", "/x"]):
            answer = shop.headwater.type("approvals", "issue", "orders.cancel", "shop/me", *one, *words)
            assert parse_refusal(answer) == "cli_parse"

    @pytest.mark.parametrize("words", [[], ["shop/me"], ["a", "b"], ["shop/me", "shop/me", "a"]])
    def test_an_instance_and_an_operation_are_named(self, shop, words):
        answer = shop.headwater.type("approvals", "prepare", *words, "--input-json", "{}")
        assert parse_refusal(answer) == "cli_parse"

    def test_they_are_named_in_whichever_order(self, shop):
        words = ["approvals", "prepare", "--input-json", '{"number":"7"}']
        one = shop.headwater.type(*words, "shop/me", "orders.cancel").result
        assert shop.headwater.type(*words, "orders.cancel", "shop/me").result == one

    @pytest.mark.clause("CLI-705", "CLI-706")
    @pytest.mark.parametrize(
        ("words", "field"),
        [
            (["orders.cancel", "shop/me", "--connection", "a b"], "connection"),
            (["", "shop/me"], "operation"),
            (["orders.show", "shop/me"], "operation"),
            (["orders.cancel", "shop/me", "--schema", "x"], "schema"),
            (["orders.cancel", "shop/me", "--revision", "F" * 64], "revision"),
            (["orders.ship", "shop/me"], "input"),
            (["orders.cancel", "--connector", "shop"], "adapter"),
            (["orders.cancel", "--instance", "me"], "adapter"),
            (["orders.cancel", "--adapter", "shop.me", "--instance", "me"], "adapter"),
            (["orders.cancel"], "adapter"),
        ],
    )
    def test_what_a_preparation_does_not_take_is_named(self, shop, words, field):
        assert misfit(shop.headwater.type("approvals", "prepare", *words, "--input-json", '{"number":"7"}')) == field

    @pytest.mark.clause("CLI-701", "CLI-705")
    def test_what_a_policy_does_not_take_is_named(self, shop, tmp_path):
        words = ["approvals", "policy-set", "shop/me", "--input-file"]
        document = tmp_path / "policy"
        for content in ("", "{}", '{"operations":"x"}', '{"operations":["orders.show"]}', '{"operations":["no.such"]}',
                        '{"operations":["orders.cancel","orders.cancel"]}', '{"operations":[],"more":1}',
                        '{"operations":[]' + " " * (2 << 20) + "}"):  # fmt: skip
            document.write_text(content)
            assert misfit(shop.headwater.type(*words, str(document), "--expected-revision", "1")) == "input_file"
        assert misfit(shop.headwater.type(*words, "/no/such/file")) == "input_file"
        document.write_text('{"operations":["orders.cancel"]}')
        assert misfit(shop.headwater.type(*words, str(document), "--expected-revision", "x")) == "expected_revision"
        inline = ["approvals", "policy-set", "shop/me", "--input-json", "{}"]
        assert parse_refusal(shop.headwater.type(*inline)) == "cli_parse"

    @pytest.mark.clause("CLI-706", "CLI-708")
    def test_a_document_is_refused_before_the_instance_and_an_unknown_one_is_not_found(self, shop, tmp_path):
        document = tmp_path / "policy"
        document.write_text("{")
        unknown = ["--adapter", "nobody"]
        assert misfit(shop.headwater.type("approvals", "policy-set", *unknown, "--input-file", str(document))) == (
            "input_file"
        )
        prepare = ["approvals", "prepare", "orders.cancel", *unknown]
        assert misfit(shop.headwater.type(*prepare, "--input-json", "{")) == "input"
        document.write_text('{"operations":[]}')
        for words in ([*prepare, "--input-json", "{}"],
                      ["approvals", "policy-set", *unknown, "--input-file", str(document)],
                      ["approvals", "policy-status", *unknown]):  # fmt: skip
            failure = shop.headwater.type(*words).failure
            assert (failure["code"], failure["stage"], failure["next_action"]) == (
                "not_found", "admission", "check_configuration"
            )  # fmt: skip

    @pytest.mark.clause("CLI-705")
    def test_what_a_person_approves_is_a_digest_and_has_to_be_the_one_of_now(self, shop, private):
        words = ["approvals", "issue", *CANCEL, "--proof-output", str(private / "proof"), "--approve-subject"]
        assert misfit(shop.headwater.type(*words, "yes")) == "approve_subject"
        failure = shop.headwater.type(*words, "0" * 64).failure
        assert (failure["code"], failure["stage"]) == ("approval_refused", "admission")
        assert list(private.iterdir()) == []

    @pytest.mark.clause("CLI-707", "CLI-705")
    def test_a_proof_goes_to_a_new_file_in_a_folder_of_ones_own(self, shop, private, monkeypatch):
        here = private / "here"
        here.mkdir(mode=0o700)
        (open_ := here / "open").mkdir(mode=0o755)
        (link := here / "link").symlink_to(private)
        (there := private / "there").write_text("mine")
        (dangling := private / "dangling").symlink_to(private / "nowhere")
        (others := here / "others").mkdir()
        others.chmod(0o777)
        (inside := others / "inside").mkdir(mode=0o700)
        (shared := here / "shared").mkdir()
        shared.chmod(0o1777)
        (below := shared / "mine").mkdir(mode=0o700)
        wrong = [
            "proof", "./proof", open_ / "proof", link / "proof", there, dangling, private / "no" / "proof",
            f"{private}/../private/proof", f"{private}//proof", f"{private}/./proof", f"{private}/", inside / "proof",
            below / "proof",
            "",
        ]  # fmt: skip
        for place in wrong:
            answer = shop.headwater.type(
                "approvals", "issue", *CANCEL, "--approve-subject", "0" * 64, "--proof-output", str(place)
            )
            assert misfit(answer) == "proof_output", place
        assert there.read_text() == "mine"
        assert sorted(os.listdir(private)) == ["dangling", "here", "there"]

    @pytest.mark.parametrize("way", ["missing", "readable", "link", "none", "large"])
    def test_an_approval_is_read_from_a_private_file(self, shop, private, way):
        file = private / "proof"
        issued(shop, private / "good")
        content = (private / "good").read_text()
        if way == "link":
            file.symlink_to(private / "good")
        elif way != "missing":
            file.write_text({"none": "{}", "large": " " * (1 << 20) + content}.get(way, content))
            file.chmod(0o644 if way == "readable" else 0o600)
        words = ["invoke", "shop/me", *CANCEL[:1], *CANCEL[2:], "--approval-file", str(file)]
        answer = shop.headwater.type(*words)
        assert misfit(answer) == "approval_file"
        assert "mutation" not in answer.failure
        assert shop.changes == []

    def test_approve_and_a_file_are_two_approvals(self, shop):
        words = ["invoke", "shop/me", *CANCEL[:1], *CANCEL[2:], "--approve", "--approval-file", "/x"]
        assert misfit(shop.headwater.type(*words)) == "approval_file"
        read = ["invoke", "shop/me", "orders.show", *CANCEL[2:], "--approve"]
        assert misfit(shop.headwater.type(*read)) == "approve"


class TestWhatBecameOfThem:
    def test_a_person_reads_what_became_of_a_write(self, shop, private):
        human = Headwater(shop.headwater.place, "human")
        issued(shop, private / "proof")
        words = ["invoke", "shop/me", "orders.cancel", "--input-json", '{"number":"7"}', "--idempotency-key", "k"]
        words += ["--approval-file", str(private / "proof")]
        for said in ("applied (sent once)\n", "applied (told again: nothing was sent now)\n"):
            answer = human.type(*words)
            assert json.loads(answer.stdout)["body"]["state"] == "cancelled"
            assert answer.stderr == said

    @pytest.mark.parametrize(("dropped", "invites"), [(True, False), (False, True)])
    def test_a_person_is_not_invited_to_repeat_what_may_have_been_done(self, shop, private, dropped, invites):
        human = Headwater(shop.headwater.place, "human")
        issued(shop, private / "proof")
        shop.instead = lambda asked: Reply(status=422, dropped=dropped) if asked.method == "POST" else None
        words = ["invoke", "shop/me", "orders.cancel", "--input-json", '{"number":"7"}']
        said = human.type(*words, "--approval-file", str(private / "proof")).stderr
        assert f"What is known of it: {'unknown' if dropped else 'refused'}." in said
        assert ("try again" in said) is invites

    @pytest.mark.clause("CLI-731")
    def test_the_newest_writes_are_listed(self, shop):
        shop.write()
        shop.instead = lambda asked: Reply(dropped=True) if asked.method == "POST" else None
        shop.unwritten()
        told = shop.headwater.type("approvals", "attempts", "shop/me").result["attempts"]
        assert [(one["operation"], one["classification"], one["is_open"]) for one in told] == [
            ("orders.cancel", "unknown", False), ("orders.cancel", "applied", False)
        ]  # fmt: skip
        assert len(shop.headwater.type("approvals", "attempts", "shop/me", "--limit", "1").result["attempts"]) == 1
        human = Headwater(shop.headwater.place, "human").type("approvals", "attempts", "shop/me").stdout
        assert "what became of it" in human.splitlines()[0]

    @pytest.mark.clause("CLI-575")
    @pytest.mark.parametrize("option", ["--approval-file", "--idempotency-key"])
    def test_a_read_takes_no_approval_and_no_key_an_empty_one_neither(self, shop, option):
        words = ["invoke", "shop/me", "orders.show", "--input-json", '{"number":"7"}', option, ""]
        assert misfit(shop.headwater.type(*words)) == option.strip("-").replace("-", "_")


class TestPolicies:
    def test_a_policy_is_published_once_seen(self, shop, tmp_path):
        document = tmp_path / "policy"
        document.write_text('{"operations":["orders.ship","orders.cancel"]}')
        words = ["approvals", "policy-set", "shop/me", "--input-file", str(document)]
        failure = shop.headwater.type(*words).failure
        assert (failure["code"], failure["field"]) == ("lifecycle_conflict", "expected_revision")
        told = shop.headwater.type(*words, "--expected-revision", "1").result
        assert told["policy"]["operations"] == ["orders.cancel", "orders.ship"]
        assert (told["policy"]["revision"], told["current"]) == (2, True)
        assert shop.headwater.type("approvals", "policy-status", "shop/me").result == told

    def test_an_empty_one_revokes_everything(self, shop):
        proof = shop.approve()
        shop.host.approving.policy_set(SELECTION, (), "1")
        assert shop.unwritten(proof=proof).code == "approval_refused"

    def test_one_of_an_instance_as_it_was_is_not_current(self, shop):
        shop.configure('permissions = { profiles = ["api_token"], operations = ["orders.cancel"] }\n')
        told = shop.headwater.type("approvals", "policy-status", "shop/me").result
        assert told["current"] is False
        failure = shop.headwater.type("approvals", "prepare", *CANCEL).failure
        assert failure["code"] == "approval_refused"


class TestLooking:
    @pytest.mark.parametrize("words", [["key-status"], ["policy-status", "shop/me"], ["clock-check"]])
    def test_where_nothing_was_ever_approved_nothing_is_made(self, unconnected, words):
        assert unconnected.headwater.type("approvals", *words).status == 0
        assert not (unconnected.headwater.state / "headwater.db").exists()


class TestKeys:
    @pytest.mark.clause("CLI-711")
    def test_help_lists_what_is_done_with_keys(self, shop):
        said = shop.headwater.type("approvals", "--help").stdout
        assert all(f"  {name} " in said for name in APPROVALS)

    def test_a_private_half_is_in_custody_and_nowhere_else(self, shop, private):
        _, answer = issued(shop, private / "proof")
        status = shop.headwater.type("approvals", "key-status")
        seed = json.loads(document_of(shop).reveal())["seed"].encode()
        for text in (answer.stdout, answer.stderr, status.stdout, status.stderr):
            assert seed not in text.encode()
        places = [*os.walk(shop.headwater.place), *os.walk(private)]
        for folder, _, names in places:
            for name in names:
                assert seed not in open(f"{folder}/{name}", "rb").read()  # noqa: SIM115
