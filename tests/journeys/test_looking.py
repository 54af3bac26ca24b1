"""Looking at what is stored: sentences and tables for people, JSON for programs, and no commands to a terminal."""

import base64
import csv
import io
import json

import pytest

INSTANCE = "guest/adhoc"
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "at": {"type": "string"}}, "required": ["id"]}
STREAMS = [
    {"name": "alpha", "primary_key": ["id"], "schema": SCHEMA, "consent_time_field": "at", "incremental": True},
    {"name": "beta", "primary_key": ["id"], "incremental": True},
]
PAINTED = "\x1b]0;title\x07"


@pytest.fixture
def full(headwater):
    """A Headwater that holds a few records, a receipt, a gap and a cursor."""
    assert headwater.collect("paints.py", words=["succeeded"], manifest=headwater.manifest(streams=STREAMS)).status == 0
    return headwater


def listed(headwater, *options):
    """Return the keys of a page of alpha."""
    page = headwater.type("records", "list", INSTANCE, "alpha", *options).result
    return [row["key"] for row in page["items"]]


def test_records_come_newest_first_and_those_without_a_time_last(full):
    """The order is that of the consent time, where the stream declares one."""
    assert listed(full) == ["formula", PAINTED, "painted", "plain", "late"]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--since", "2026-04-03"], ["formula", PAINTED]),
        (["--until", "2026-04-03T10:00:00Z"], ["painted", "plain"]),
        (["--since", "2026-04-02T10:00:00Z", "--until", "2026-04-03T10:00:00Z"], ["painted"]),
        (["--where", "n=4"], ["formula"]),
        (["--where", "text=one", "--where", "n=1"], ["plain"]),
        (["--where", "text=one", "--where", "n=2"], []),
        (["--where", "n=5"], ["late"]),
        (["--where", "no such field=1"], []),
    ],
)
def test_records_are_filtered_by_time_and_field(full, options, keys):
    """Since is inclusive, until is not, and a record without a time lies in no window."""
    assert listed(full, *options) == keys


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("order", ["timed", "untimed"])
def test_pages_put_together_are_the_whole(full, limit, order):
    """Whatever the size of a page, each record comes once and in order, timed or not."""
    streams = [{"name": "alpha", "primary_key": ["id"]}, {"name": "beta", "primary_key": ["id"]}]
    if order == "untimed":
        full.collect("paints.py", words=["succeeded"], manifest=full.manifest(streams=streams))
    whole, keys, cursor = listed(full), [], []
    while cursor is not None:
        page = full.type("records", "list", INSTANCE, "alpha", "--limit", str(limit), *cursor).result
        keys += [row["key"] for row in page["items"]]
        cursor = ["--cursor", page["next_cursor"]] if "next_cursor" in page else None
    assert keys == whole
    assert len(keys) == 5


@pytest.mark.clause("CLI-006", "CLI-011")
@pytest.mark.parametrize(
    "options",
    [["--cursor", "nonsense"], ["--cursor", "W10"], ["--since", "yesterday"], ["--where", "x"], ["--where", 'a"=1']],
)
def test_a_filter_that_does_not_fit_is_exit_2(full, options):
    """A refusal says what fits, and does not repeat what was typed."""
    answer = full.type("records", "list", INSTANCE, "alpha", *options)
    assert (answer.status, answer.failure["code"]) == (2, "invalid_input")
    assert "nonsense" not in answer.stderr
    assert "yesterday" not in answer.stderr


@pytest.mark.clause("CLI-007")
@pytest.mark.parametrize(
    "words",
    [
        ["records", "list", INSTANCE, "nonsuch"],
        ["records", "list", "no/body", "alpha"],
        ["records", "get", INSTANCE, "alpha", "nonsuch"],
        ["records", "history", INSTANCE, "alpha", "nonsuch"],
        ["records", "export", INSTANCE, "nonsuch"],
        ["runs", "show", "run_nonsuch"],
        ["rejections", "show", "999"],
    ],
)
def test_what_is_not_there_is_exit_1(full, words):
    """A question about nothing has an answer of its own."""
    answer = full.type(*words)
    assert (answer.status, answer.failure["code"]) == (1, "not_found")
    assert answer.failure["command"].startswith("headwater ")


@pytest.mark.clause("CLI-037")
def test_a_person_who_has_collected_nothing_is_told_what_to_do(headwater):
    """Nothing is not an accident."""
    answer = type(headwater)(headwater.place, "human").type("streams", "list")
    assert (answer.status, answer.stdout) == (1, "")
    assert "Nothing has been collected yet." in answer.stderr
    assert "headwater demo" in answer.stderr


def test_an_export_is_every_record_a_line(full):
    """JSON lines hold each record's data as it came, on stdout or in a file."""
    answer = full.type("records", "export", INSTANCE, "alpha")
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [row["key"] for row in rows] == listed(full)
    assert '"data":{"id": "plain", "text": "one", "n": 1, "at": "2026-04-01T10:00:00Z"}' in answer.stdout
    out = full.place / "out.jsonl"
    assert full.type("records", "export", INSTANCE, "alpha", "--out", str(out)).result == {
        "records": 5,
        "out": str(out),
    }
    assert out.read_text() == answer.stdout
    narrowed = full.type("records", "export", INSTANCE, "alpha", "--where", "n=4").stdout
    assert [json.loads(line)["key"] for line in narrowed.splitlines()] == ["formula"]


def test_a_table_has_a_column_a_field_and_no_formula(full):
    """What a spreadsheet would take for a formula is made a text; the rest is exact."""
    answer = full.type("records", "export", INSTANCE, "alpha", "--format", "csv")
    header, *rows = csv.reader(io.StringIO(answer.stdout, newline=""))
    assert set(header) == {"key", "id", "text", "n", "at", "more"}
    assert header[0] == "key"
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert table["formula"]["text"] == "'=HYPERLINK(1)"
    assert table["painted"]["text"] == "\x1b[31mred\x07\x9b2J"
    assert table["late"]["at"] == ""


COMMANDS = [
    ["streams", "list"],
    ["streams", "list", INSTANCE],
    ["records", "list", INSTANCE, "alpha"],
    ["records", "get", INSTANCE, "alpha", PAINTED],
    ["records", "get", INSTANCE, "alpha", "painted"],
    ["records", "get", INSTANCE, "alpha", "late"],
    ["records", "history", INSTANCE, "alpha", PAINTED],
    ["runs", "list"],
    ["runs", "show"],
    ["runs", "explain"],
    ["rejections", "list"],
    ["rejections", "show", "1"],
    ["gaps", "list"],
    ["state", "show", INSTANCE],
]


@pytest.mark.clause("CLI-001", "CLI-044")
@pytest.mark.parametrize("ending", ["succeeded", "failed"])
def test_no_data_drives_a_terminal(headwater, ending):
    """Escape sequences in keys, texts, cursors, reasons and stderr are shown, and do nothing."""
    manifest = headwater.manifest(streams=STREAMS)
    person = type(headwater)(headwater.place, "human")
    answers = [person.collect("paints.py", words=[ending], manifest=manifest)]
    answers += [person.type(*words) for words in COMMANDS]
    assert [answer.status for answer in answers[1:]] == [0] * len(COMMANDS)
    for answer in answers:
        text = answer.stdout + answer.stderr
        assert text
        assert [character for character in text if not character.isprintable() and character != "\n"] == []
        assert "Traceback" not in text


@pytest.mark.clause("CLI-001")
@pytest.mark.parametrize("words", COMMANDS)
def test_each_command_answers_a_program_in_one_line(full, words):
    """One envelope, one line, nothing on stderr; and no escape byte, which JSON writes as text."""
    answer = full.type(*words)
    assert answer.status == 0
    assert answer.stderr == ""
    assert answer.stdout.endswith("\n")
    assert answer.stdout.count("\n") == 1
    assert json.loads(answer.stdout).keys() == {"ok", "result"}
    assert "\x1b" not in answer.stdout


def test_every_place_tells_the_same_run(full):
    """Streams, runs, rejections, gaps and state fit together."""
    alpha, beta = full.type("streams", "list").result["streams"]
    assert (alpha["stream"], alpha["records"], beta["stream"], beta["records"]) == ("alpha", 5, "beta", 0)
    run = full.type("runs", "list").result["items"][0]
    assert (run["status"], run["accepted"], run["rejected"]) == ("succeeded", 5, 1)
    assert full.type("runs", "list", "--status", "failed").result["items"] == []
    assert full.type("runs", "list", "no/body").result["items"] == []
    (receipt,) = full.type("rejections", "list", INSTANCE, "--stream", "alpha").result["items"]
    shown = full.type("rejections", "show", str(receipt["receipt"])).result
    assert (receipt["run_id"], receipt["reason"]) == (run["run_id"], "key_identity")
    assert json.loads(base64.b64decode(shown["line_base64"]))["data"] == {"id": 1}
    assert full.type("rejections", "list", "--run", "run_nonsuch").result["items"] == []
    (gap,) = full.type("gaps", "list", INSTANCE).result["items"]
    assert (gap["stream"], gap["status"], gap["first_run"]) == ("beta", "pending", run["run_id"])
    (cursor,) = full.type("state", "show", INSTANCE).result["cursors"]
    assert (cursor["stream"], cursor["namespace"]) == ("alpha", "global")


@pytest.mark.clause("CLI-015", "CLI-050")
def test_global_options_may_stand_behind_the_command(full):
    """Where they stand changes nothing of the answer."""
    words = full.words("streams", "list")
    start = words.index("--config")
    behind = [*words[:start], "streams", "list", *words[start : start + 6]]
    assert full.run(behind, "").stdout == full.type("streams", "list").stdout
