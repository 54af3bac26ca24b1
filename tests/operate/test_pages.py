"""`headwater invoke` with `--fields`, `--each` and `--walk`, as they are typed."""

import json
import signal
import subprocess
import threading
from pathlib import Path
from urllib.parse import parse_qsl

import apsw
import pytest
from journeys.conftest import Headwater
from operate.desk import HEAD, Desk
from signin.provider import Reply

LIST = ("invoke", "shop", "orders.list", "--input-json", "{}")
PAGED = (
    HEAD
    + """
[operations."orders.list"]
description = "What was ordered, a page at a time."
path = "/orders"
params.cursor = {}
params.size = { type = "integer" }
params.since = {}

[operations."orders.list".walk]
param = "cursor"
next = "/next"
records = "/orders"
first_only = ["since"]
ends = [{ name = "no_more", pointer = "/more", equals = false }]

[operations."orders.cancel"]
description = "Cancel all."
effect = "write"
method = "POST"
path = "/cancel"
"""
)


def paged(desk: Desk, last: int = 3, **odd: Reply) -> None:
    """Serve pages 1 to `last`, two orders a page; some are answered otherwise."""

    def answer(asked):
        page = int(dict(parse_qsl(asked.path.partition("?")[2])).get("cursor", "1"))
        orders = [{"number": page * 10 + row, "item": {"name": "tea"}} for row in (1, 2)]
        body = {"orders": orders, "next": str(page + 1), "more": page < last}
        return odd.get(f"page_{page}", Reply(body=body))

    desk.define(PAGED)
    desk.replies["/orders"] = answer


def summary(answer) -> dict:
    """Return the last line of what was printed."""
    assert answer.status == 0, answer.stderr
    return json.loads(answer.stdout.splitlines()[-1])["result"]


class TestShaping:
    @pytest.mark.clause("CLI-600", "CLI-613", "CLI-615", "CLI-633")
    def test_fields_are_printed_alone(self, desk, typed):
        paged(desk)
        told = typed.type(*LIST, "--fields", "next, as:orders[].item.name, nothing.there").result
        request = told.pop("request_id")
        assert told == {"next": "2", "as": ["tea", "tea"], "missing": ["nothing.there"]}
        assert request == desk.journal()[-1]["request_id"]

    @pytest.mark.clause("CLI-601", "CLI-042")
    def test_each_element_is_a_line_and_the_envelope_the_last(self, desk, typed):
        paged(desk)
        answer = typed.type(
            "invoke", "shop", "orders.list", "--input-json", "{}", "--each", "orders", "--fields", "number"
        )
        *lines, last = answer.stdout.splitlines()
        assert [json.loads(line) for line in lines] == [{"number": 11}, {"number": 12}]
        assert json.loads(last)["result"]["records"] == 2

    @pytest.mark.clause("CLI-617")
    def test_a_person_gets_the_lines_and_then_the_result_alone(self, desk, typed):
        paged(desk)
        answer = Headwater(typed.place, "human").type(
            "invoke", "shop", "orders.list", "--input-json", "{}", "--each", "orders"
        )
        lines = answer.stdout.splitlines()
        assert [json.loads(line)["number"] for line in lines[:2]] == [11, 12]
        assert json.loads("".join(lines[2:]))["records"] == 2

    @pytest.mark.clause("CLI-602", "CLI-621", "CLI-622", "CLI-623", "CLI-624", "CLI-625")
    @pytest.mark.parametrize(
        ("flag", "text"),
        [
            ("fields", "a..b"),
            ("fields", "a,,b"),
            ("fields", "missing"),
            ("fields", "[]"),
            ("fields", "a:x,a:y"),
            ("each", "a[]"),
        ],
    )
    def test_a_path_is_checked_before_anything_else(self, desk, typed, flag, text):
        failure = typed.type("invoke", "no such target", "x", f"--{flag}", text).failure
        assert (failure["code"], failure["stage"], failure["field"]) == ("invalid_input", "arguments", flag)
        assert desk.paths == []

    @pytest.mark.clause("CLI-626", "CLI-682")
    @pytest.mark.parametrize("flag", ["--fields=a", "--each=a", "--walk"])
    def test_describing_has_nothing_to_shape(self, typed, flag):
        failure = typed.type("invoke", "shop", "orders.list", "--describe", flag).failure
        assert (failure["code"], failure["field"]) == ("invalid_input", flag[2:].partition("=")[0])

    @pytest.mark.clause("CLI-627", "CLI-682")
    def test_a_write_has_no_lines_and_no_pages(self, desk, typed):
        paged(desk)
        desk.configure('permissions = { profiles = ["api_token"], operations = ["orders.cancel"] }\n')
        write = ["invoke", "shop", "orders.cancel", "--input-json", "{}"]
        for flags, told in (
            (["--each", "a"], ("invalid_input", "each")),
            (["--walk", "--out", "-"], ("invalid_input", "walk")),
            (["--fields", "a"], ("approval_required", None)),
        ):
            failure = typed.type(*write, *flags).failure
            assert (failure["code"], failure.get("field")) == told

    @pytest.mark.clause("CLI-619")
    def test_a_failure_is_never_shaped(self, desk, typed):
        desk.replies["/orders"] = Reply(status=404)
        plain, shaped = (typed.type(*LIST, *more).failure for more in ([], ["--fields", "a", "--each", "b"]))
        assert {**plain, "request_id": ""} == {**shaped, "request_id": ""}


class TestWalk:
    WALK = ("invoke", "shop", "orders.list", "--walk", "--out")

    @pytest.mark.clause("CLI-650", "CLI-653", "CLI-655", "CLI-659", "CLI-660", "CLI-661", "CLI-662", "CLI-654")
    def test_every_page_is_asked_for_and_each_record_is_a_line(self, desk, typed):
        paged(desk)
        out = typed.place / "orders.ndjson"
        told = summary(typed.type(*self.WALK, str(out), "--input-json", '{"since":"2026"}', "--fields", "number"))
        assert told == {"complete": True, "end": "no_more", "out": str(out), "pages": 3, "records": 6}
        assert [json.loads(line)["number"] for line in out.read_text().splitlines()] == [11, 12, 21, 22, 31, 32]
        assert out.stat().st_mode & 0o777 == 0o600
        assert desk.paths == ["/orders?since=2026", "/orders?cursor=2", "/orders?cursor=3"]
        assert [row["outcome"] for row in desk.journal()] == ["succeeded"] * 3

    @pytest.mark.clause("CLI-042", "CLI-659")
    def test_records_may_go_to_stdout_with_the_summary_behind_them(self, desk, typed):
        paged(desk)
        answer = typed.type(*self.WALK, "-", "--input-json", "{}")
        *lines, last = answer.stdout.splitlines()
        assert [json.loads(line)["number"] for line in lines] == [11, 12, 21, 22, 31, 32]
        assert json.loads(last)["result"]["records"] == 6

    @pytest.mark.clause("CLI-651")
    def test_the_walk_is_the_one_that_is_described(self, desk, typed):
        paged(desk)
        told = typed.type("invoke", "shop", "orders.list", "--describe").result["input_schema"]["x-connectors-walk"]
        assert (told["param"], told["next"], told["records"], told["first_only"]) == (
            "cursor",
            "/next",
            "/orders",
            ["since"],
        )
        assert told["ends"] == [{"name": "no_more", "pointer": "/more", "equals": False}]

    @pytest.mark.clause("CLI-664", "CLI-674", "CLI-676")
    def test_a_walk_that_stopped_goes_on_from_there(self, desk, typed):
        paged(desk)
        first, second = typed.place / "first", typed.place / "second"
        told = summary(typed.type(*self.WALK, str(first), "--max-pages", "2", "--input-json", '{"size":2}'))
        assert (told["complete"], told["stopped"], told["resume"]) == (False, "max_pages", {"size": 2, "cursor": "3"})
        told = summary(typed.type(*self.WALK, str(second), "--input-json", json.dumps(told["resume"])))
        assert (told["complete"], told["pages"]) == (True, 1)
        assert len(first.read_text().splitlines()) + len(second.read_text().splitlines()) == 6

    @pytest.mark.clause("CLI-665", "CLI-673", "CLI-676")
    def test_a_later_page_that_is_refused_stops_it(self, desk, typed):
        paged(desk, page_3=Reply(status=429, headers={"Retry-After": "99"}))
        out = typed.place / "out"
        told = summary(typed.type(*self.WALK, str(out), "--input-json", "{}"))
        assert (told["stopped"], told["pages"], told["records"], told["resume"]) == ("refused", 2, 4, {"cursor": "3"})
        assert (told["error"]["code"], told["error"]["data"]["retry_after_seconds"]) == ("failure", 99)
        assert len(out.read_text().splitlines()) == 4

    @pytest.mark.clause("CLI-677")
    def test_a_first_page_that_is_refused_is_the_commands_own_failure(self, desk, typed):
        paged(desk, page_1=Reply(status=403))
        out = typed.place / "out"
        answer = typed.type(*self.WALK, str(out), "--input-json", "{}")
        assert (answer.status, answer.failure["code"], out.exists()) == (1, "forbidden", False)
        assert typed.type(*self.WALK, str(out), "--input-json", '{"other":1}').failure["field"] == "input"
        assert not out.exists()

    @pytest.mark.clause("CLI-689")
    def test_a_description_that_changes_on_the_way_stops_it(self, desk, typed):
        paged(desk)
        serve = desk.replies["/orders"]

        def changing(asked):
            if "cursor=2" in asked.path:
                desk.define(PAGED.replace("Cancel all", "Cancel everything"))
            return serve(asked)

        desk.replies["/orders"] = changing
        told = summary(typed.type(*self.WALK, "-", "--input-json", "{}"))
        assert (told["stopped"], told["pages"]) == ("refused", 2)
        assert told["error"]["data"]["code"] == "stale_description"

    @pytest.mark.clause("CLI-667", "CLI-676")
    def test_a_page_that_cannot_be_written_whole_is_cut_away(self, desk, typed):
        paged(desk)
        out = typed.place / "out"
        page = {"orders": [{"text": "x" * 300_000}], "more": True}
        desk.replies["/orders"] = lambda asked: Reply(body={**page, "next": str(len(desk.paths) + 1)})
        words = typed.words(*self.WALK, str(out), "--input-json", "{}")
        limit = ["prlimit", "--fsize=1000000", "--"]  # more than the database takes, less than four pages
        run = subprocess.run([*limit, *words], capture_output=True, text=True, timeout=60, check=False)
        told = json.loads(run.stdout)["result"]
        assert (told["stopped"], told["pages"], told["records"], told["resume"]) == ("write", 3, 3, {"cursor": "4"})
        assert [len(json.loads(line)["text"]) for line in out.read_text().splitlines()] == [300_000] * 3

    @pytest.mark.clause("CLI-678", "CLI-679", "CLI-680", "CLI-681", "CLI-683")
    @pytest.mark.parametrize(
        ("flags", "field"),
        [
            (["--walk"], "out"),
            (["--walk", "--out", "-", "--max-pages", "0"], "max_pages"),
            (["--walk", "--out", "-", "--max-pages", "10001"], "max_pages"),
            (["--walk", "--out", "-", "--max-pages", "x"], "max_pages"),
            (["--max-pages", "5"], "max_pages"),
            (["--out", "-"], "out"),
            (["--walk", "--out", "-", "--each", "a"], "each"),
            (["--walk", "--out", "config.toml"], "out"),
            (["--walk", "--out", "no/such/folder"], "out"),
            (["--walk", "--out", ""], "out"),
        ],
    )
    def test_what_does_not_go_together_is_refused_before_anything_is_asked(self, desk, typed, flags, field):
        paged(desk)
        run = subprocess.run(
            typed.words("invoke", "shop", "orders.list", *flags, "--input-json", "{}"),
            capture_output=True, cwd=typed.place, timeout=60, check=False,
        )  # fmt: skip
        data = json.loads(run.stderr)["error"]["data"]
        assert (run.returncode, data["code"], data["stage"], data["field"]) == (2, "invalid_input", "arguments", field)
        assert desk.paths == []

    @pytest.mark.clause("CLI-684", "CLI-934")
    def test_an_operation_without_pages_is_not_walked(self, desk, typed):
        failure = typed.type(*self.WALK, "-", "--input-json", "{}").failure
        assert (failure["code"], failure["stage"], failure["field"]) == ("unsupported", "admission", "walk")
        assert desk.paths == []

    @pytest.mark.clause("CLI-685", "CLI-687")
    def test_a_first_page_without_a_list_leaves_an_empty_file(self, desk, typed):
        paged(desk, page_1=Reply(body={"orders": {}}))
        out = typed.place / "out"
        told = summary(typed.type(*self.WALK, str(out), "--input-json", "{}"))
        assert told == {"complete": False, "out": str(out), "pages": 0, "records": 0, "stopped": "records_not_a_list"}
        assert out.read_bytes() == b""
        human = Headwater(typed.place, "human").type(*self.WALK, "-", "--input-json", "{}")
        assert "stopped: records_not_a_list" in human.stdout

    @pytest.mark.clause("CLI-691")
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interrupt_leaves_whole_pages(self, desk, typed, number):
        paged(desk)
        serve, waits, goes = desk.replies["/orders"], threading.Event(), threading.Event()

        def slow(asked):
            if "cursor=3" in asked.path:
                waits.set()
                goes.wait(30)
            return serve(asked)

        desk.replies["/orders"] = slow
        out = typed.place / "out"
        self.interrupted(typed, out, waits, number)
        goes.set()
        assert [json.loads(line)["number"] for line in out.read_text().splitlines()] == [11, 12, 21, 22]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interrupt_at_the_first_page_leaves_no_file(self, desk, typed, number):
        paged(desk)
        waits, goes = threading.Event(), threading.Event()

        def slow(asked):
            waits.set()
            goes.wait(30)
            return Reply(status=500)

        desk.replies["/orders"] = slow
        self.interrupted(typed, typed.place / "out", waits, number)
        goes.set()
        assert not (typed.place / "out").exists()

    def test_records_stay_where_only_the_note_of_them_cannot_be_written(self, desk, typed):
        paged(desk, last=1)
        page = desk.replies["/orders"]

        def unnoted(asked):
            database = apsw.Connection(str(typed.state / "headwater.db"))
            database.execute("DROP TABLE invocations")
            database.close()
            return page(asked)

        desk.replies["/orders"] = unnoted
        out = typed.place / "out"
        assert typed.type(*self.WALK, str(out), "--input-json", "{}").failure["code"] == "storage_failed"
        assert [json.loads(line)["number"] for line in out.read_text().splitlines()] == [11, 12]

    def interrupted(self, typed: Headwater, out: Path, waits: threading.Event, number: int) -> None:
        """Walk, and press Ctrl-C while a page is waited for."""
        words = typed.words(*self.WALK, str(out), "--input-json", "{}")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert waits.wait(30)
            process.send_signal(number)
            printed, told = process.communicate(timeout=30)
        assert (process.returncode, printed, json.loads(told)["error"]["data"]["code"]) == (130, b"", "interrupted")
