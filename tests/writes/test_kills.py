"""kill -9 in the midst of a write: it is never sent twice, and what is told of it afterwards is true."""

import json
import os
import random
import signal
import subprocess
import threading
from contextlib import suppress

import pytest
from writes.by_hand import approve
from writes.shop import SHIP

from headwater.errors import HeadwaterError


def began(shop, proof, operation="orders.ship", given=None):
    """Start a write in a process of its own."""
    words = ["invoke", "shop/me", operation, "--input-json", json.dumps(given or SHIP)]
    words += ["--approval-file", str(proof), "--idempotency-key", "once"]
    environment = {"HOME": str(shop.headwater.place), "PATH": os.environ["PATH"]}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(shop.headwater.words(*words), env=environment, **pipes)


def held(shop, method):
    """Hold the answer to requests of a method. Return what is set when one is there, and what lets them go."""
    reached, over = threading.Event(), threading.Event()

    def instead(asked):
        if asked.method == method:
            reached.set()
            over.wait(30)

    shop.instead = instead
    return reached, over


def asked_again(shop, proof):
    """Ask for the same write once more, and return what is told of it: a classification, and by which code."""
    with suppress(HeadwaterError):
        words = ["invoke", "shop/me", "orders.ship", "--input-json", json.dumps(SHIP)]
        answer = shop.headwater.type(*words, "--approval-file", str(proof), "--idempotency-key", "once")
        told = answer.result if answer.status == 0 else answer.failure
        return told["mutation"]["classification"], told.get("code")
    raise AssertionError


@pytest.mark.clause("CLI-731", "CLI-584")
def test_killed_while_it_waits_for_the_answer_it_is_unknown(shop):
    reached, over = held(shop, "PATCH")
    proof = approve(shop.headwater, "shop/me", "orders.ship", SHIP)
    child = began(shop, proof)
    assert reached.wait(30)
    assert shop.states() == [("dispatching", "not_attempted")]
    child.kill()
    child.wait()
    over.set()
    assert asked_again(shop, proof) == ("unknown", "outcome_unknown")
    assert shop.states() == [("indeterminate", "unknown")]
    assert shop.changes == ["PATCH /orders/7"]


@pytest.mark.clause("CLI-731")
def test_killed_between_preparing_and_sending_it_was_not_attempted(shop):
    """The child stops itself where the attempt is prepared: the database is what it was killed with."""
    proof = approve(shop.headwater, "shop/me", "orders.ship", SHIP)
    program = (
        "import os, signal, sys\n"
        "from headwater.store.sqlite.attempts import Attempts\n"
        "Attempts.dispatch = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from headwater.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    words = ["invoke", "shop/me", "orders.ship", "--input-json", json.dumps(SHIP), "--approval-file", str(proof)]
    line = [shop.headwater.words()[0], "-c", program, *shop.headwater.words(*words)[3:], "--idempotency-key", "once"]
    assert subprocess.run(line, check=False, capture_output=True, timeout=60).returncode == -signal.SIGKILL
    assert shop.states() == [("prepared", "not_attempted")]
    assert asked_again(shop, proof) == ("not_attempted", "approval_replayed")
    assert shop.states() == [("aborted", "not_attempted")]
    assert shop.changes == []
    assert shop.write("orders.ship", SHIP, key=b"once")["mutation"]["classification"] == "applied"


def test_killed_at_any_time_it_is_sent_once_at_most_and_told_as_it_is(shop):
    """Each round is a write of its own, killed within the time that one takes."""
    lots = random.Random(os.environ["HEADWATER_SEED"])
    for _ in range(6):
        shop.orders["7"] = {"state": "open", "etag": "v1"}
        shop.running.asked.clear()
        proof = approve(shop.headwater, "shop/me", "orders.ship", SHIP)
        child = began(shop, proof)
        with suppress(subprocess.TimeoutExpired):
            child.wait(lots.uniform(0.15, 0.6))
        child.kill()
        child.wait()
        sent = len(shop.changes)
        classification, code = asked_again(shop, proof)
        assert len(shop.changes) <= 1
        if len(shop.changes) > sent:
            assert (classification, code) == ("applied", None)
        elif sent:
            assert classification in ("applied", "unknown")
        else:
            assert classification in ("not_attempted", "unknown")
        forget_key(shop)


def forget_key(shop):
    """Let the key stand for nothing any more."""
    from headwater.store.sqlite.database import open_database

    database = open_database(shop.database)
    database.execute("UPDATE attempts SET key = NULL")
    database.close()


def test_two_at_once_are_one_after_the_other(shop):
    """Both have an approval; the second finds the order as the first has left it."""
    proofs = [approve(shop.headwater, "shop/me", "orders.ship", SHIP) for _ in range(2)]
    reached, over = held(shop, "PATCH")
    first = began(shop, proofs[0])
    assert reached.wait(30)
    late = shop.unwritten("orders.ship", SHIP, seconds=0.3)
    assert (late.code, late.stage, late.data["mutation"]["classification"]) == ("timeout", "admission", "not_attempted")
    over.set()
    assert first.wait(30) == 0
    error = shop.unwritten("orders.ship", SHIP)
    assert error.data["mutation"]["classification"] == "not_attempted"
    assert len(shop.changes) == 1


@pytest.mark.clause("CLI-584", "CLI-024", "CLI-712", "CLI-714")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_is_unknown_and_not_sent_again(shop, number):
    reached, over = held(shop, "PATCH")
    proof = approve(shop.headwater, "shop/me", "orders.ship", SHIP)
    child = began(shop, proof)
    assert reached.wait(30)
    child.send_signal(number)
    _, said = child.communicate(timeout=30)
    over.set()
    failure = json.loads(said)["error"]["data"]
    assert (child.returncode, failure["code"], failure["stage"]) == (130, "interrupted", "dispatch")
    assert failure["mutation"]["classification"] == "unknown"
    assert shop.states() == [("indeterminate", "unknown")]
    assert asked_again(shop, proof) == ("unknown", "outcome_unknown")
    assert len(shop.changes) == 1


@pytest.mark.clause("CLI-712", "CLI-713")
def test_interrupted_before_it_is_sent_it_was_not_attempted(shop):
    reached, over = held(shop, "GET")
    child = began(shop, approve(shop.headwater, "shop/me", "orders.ship", SHIP))
    assert reached.wait(30)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    over.set()
    failure = json.loads(said)["error"]["data"]
    assert (child.returncode, failure["code"], failure["stage"]) == (130, "interrupted", "admission")
    assert failure["mutation"]["classification"] == "not_attempted"
    assert (shop.changes, shop.states()) == ([], [])
