"""Writes that an integration's code does: what it says is believed only where it says that it did not do it."""

import asyncio
import json
import os
import signal
import subprocess
import threading

import pytest
from journeys.conftest import Headwater
from operate.counter import CODE, Counter, counter_in
from operate.desk import SELECTION
from signin.provider import Reply
from writes.by_hand import approve
from writes.shop import told

from headwater.errors import HeadwaterError
from headwater.joining.writing import Order

NUMBER = {"number": "7"}
WRITING = CODE.replace(
    'return self._get(ctx, "/cancelled")',
    """if given["number"] == "dies":
            import os
            self._get(ctx, "/dying")
            os._exit(1)
        if given["number"] == "odd":
            return {"no": "number"}
        if given["number"].startswith("code:"):
            raise Refused(given["number"][5:])
        return self._get(ctx, "/cancelled")""",
)


@pytest.fixture
def counter(tmp_path):
    with counter_in(tmp_path) as one:
        one.code(WRITING)
        one.connect()
        host = one.host
        host.operating.list_(SELECTION, None, 10, None)  # starts the program once, so that it says what it does
        asyncio.run(host.approval_keys.init(None))
        host.approving.policy_set(SELECTION, ("orders.cancel",), None)
        one.replies["/cancelled"] = Reply(body=NUMBER)
        yield one


def cancel(counter: Counter, given=None):
    """Cancel an order with a new approval."""
    given, host = given or NUMBER, counter.host
    aimed, preparation = host.approving.prepare(SELECTION, "orders.cancel", (None, None), None, given)
    proof = asyncio.run(host.approving.issue(aimed, None, given, preparation.sha256))
    return asyncio.run(host.writing.write(Order(aimed, given, None, None), proof, 20))


def refused(counter: Counter, number: str) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        cancel(counter, {"number": number})
    return caught.value


def test_what_code_did_is_applied_and_in_the_journal_once(counter):
    answer = cancel(counter)
    assert answer["result"] == NUMBER
    assert answer["mutation"]["classification"] == "applied"
    assert counter.paths == ["/cancelled"]
    noted = counter.journal()[-1]
    assert (noted["effect"], noted["outcome"], noted["request_id"]) == ("write", "succeeded", answer["request_id"])


@pytest.mark.parametrize(
    ("code", "told_"),
    [
        ("invalid_fields", ("service_failure", "dispatch", "retry_status", "refused")),
        ("credential_invalid", ("service_failure", "dispatch", "retry_status", "refused")),
        ("insufficient_scope", ("forbidden", "dispatch", "request_permission", "refused")),
        ("provider_rate_limited", ("outcome_unknown", "dispatch", "retry_status", "unknown")),
        ("provider_unavailable", ("outcome_unknown", "dispatch", "retry_status", "unknown")),
        ("provider_timeout", ("outcome_unknown", "dispatch", "retry_status", "unknown")),
        ("exchange_unknown", ("outcome_unknown", "dispatch", "retry_status", "unknown")),
    ],
)
def test_only_a_code_that_says_that_it_was_not_done_is_a_refusal(counter, code, told_):
    assert told(refused(counter, f"code:{code}")) == told_


def test_code_that_dies_behind_a_request_leaves_it_unknown(counter):
    counter.replies["/dying"] = Reply(body={})
    assert told(refused(counter, "dies")) == ("outcome_unknown", "dispatch", "retry_status", "unknown")


def test_a_result_that_was_not_declared_was_applied_and_is_not_shown(counter):
    assert told(refused(counter, "odd")) == ("service_failure", "dispatch", "retry_status", "applied")


def test_a_code_write_without_an_approval_runs_nothing(counter):
    with pytest.raises(HeadwaterError) as caught:
        counter.ask("orders.cancel", NUMBER)
    assert caught.value.code == "approval_required"
    assert counter.paths == []


def test_code_that_was_changed_since_its_policy_needs_another(counter):
    counter.code(WRITING + "\n# changed\n")
    with pytest.raises(HeadwaterError) as caught:
        cancel(counter)
    assert caught.value.code in ("approval_refused", "lifecycle_conflict")


@pytest.mark.clause("CLI-704")
def test_approving_starts_no_owner_and_no_program(counter):
    counter.stop()
    aimed, preparation = counter.host.approving.prepare(SELECTION, "orders.cancel", (None, None), None, NUMBER)
    asyncio.run(counter.host.approving.issue(aimed, None, NUMBER, preparation.sha256))
    counter.host.approving.policy_status(SELECTION)
    counter.host.approving.policy_set(SELECTION, (), "1")
    assert not counter.runs


@pytest.mark.clause("CLI-704")
def test_of_a_program_that_never_said_what_it_does_nothing_is_approved(tmp_path):
    with counter_in(tmp_path) as one:
        one.code(WRITING)
        one.connect()
        one.stop()
        asyncio.run(one.host.approval_keys.init(None))
        with pytest.raises(HeadwaterError) as caught:
            one.host.approving.policy_set(SELECTION, ("orders.cancel",), None)
        assert (caught.value.code, caught.value.command) == (
            "description_unavailable", "headwater operations list shop/me"
        )  # fmt: skip
        assert not one.runs


def test_code_that_is_changed_after_its_approval_was_looked_at_is_not_run(counter):
    """The program is started with the new code, and then the approval is looked at once more."""
    counter.lapse()
    counter.stop()
    answer = counter.answer

    def meanwhile(asked):
        if asked.path == "/whoami":
            counter.code(WRITING.replace('"/cancelled"', '"/other"'))
        return answer(asked)

    aimed, preparation = counter.host.approving.prepare(SELECTION, "orders.cancel", (None, None), None, NUMBER)
    proof = asyncio.run(counter.host.approving.issue(aimed, None, NUMBER, preparation.sha256))
    counter.running.answer = meanwhile
    with pytest.raises(HeadwaterError) as caught:
        asyncio.run(counter.host.writing.write(Order(aimed, NUMBER, None, None), proof, 20))
    assert told(caught.value) == ("approval_refused", "admission", "retry_status", "not_attempted")
    assert counter.paths == []


def test_a_person_sees_what_code_is_given(counter):
    human = Headwater(counter.headwater.place, "human")
    said = human.type("approvals", "prepare", "shop/me", "orders.cancel", "--input-json", '{"number":"7"}').stdout
    assert 'what the connector\'s code is given:\n{\n  "number": "7"\n}' in said


def test_ctrl_c_ends_the_wait_for_code(counter, tmp_path):
    """The code goes on, and nobody knows what comes of it."""
    reached, over = threading.Event(), threading.Event()

    def hold(_asked):
        reached.set()
        over.wait(30)
        return Reply(body=NUMBER)

    counter.replies["/cancelled"] = hold
    words = ["invoke", "shop/me", "orders.cancel", "--input-json", '{"number":"7"}']
    words += ["--approval-file", str(approve(counter.headwater, "shop/me", "orders.cancel", NUMBER))]
    environment = {"HOME": str(counter.headwater.place), "PATH": os.environ["PATH"]}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(counter.headwater.words(*words), env=environment, **pipes)
    assert reached.wait(30)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=10)
    over.set()
    failure = json.loads(said)["error"]["data"]
    assert (failure["code"], failure["mutation"]["classification"]) == ("interrupted", "unknown")
