"""Collecting with any program that speaks the protocol: what it is told, what is kept, and what is refused."""

import json

import pytest

EXACT = '{"a":{"b":[null,""]},"n":9007199254740991,"d":"0.1000000000000000055","t":"\u00e9\\u0000\u2028"}'


@pytest.mark.clause("CLI-001", "CP-204", "CP-414")
def test_a_first_run_stores_and_a_second_finds_nothing_new(headwater):
    """What came before is unchanged, and no version is written for it."""
    first = headwater.collect("good.sh").result
    second = headwater.collect("good.sh").result
    assert [row["accepted"] for row in first["streams"]] == [1, 0]
    assert [(row["accepted"], row["unchanged"]) for row in second["streams"]] == [(0, 1), (0, 0)]
    assert first["checkpoints"] == {"committed": ["alpha"], "withheld": []}
    assert len(headwater.type("records", "history", "guest/adhoc", "alpha", "a0").result["versions"]) == 1
    assert first["run_id"] != second["run_id"]


@pytest.mark.clause("CP-145", "CP-149", "CP-405", "CP-407", "CP-905", "CP-300", "CP-301")
def test_start_says_what_is_wanted_and_what_was_committed(headwater):
    """START is the only thing that is said; its state is null at first, and then each cursor exactly as it came."""
    notes = headwater.file("notes")
    for _ in range(2):
        assert headwater.collect("notes_start.py", words=[str(notes), EXACT]).status == 0
    first, second = (json.loads(line) for line in notes.read_text().split("\n")[:-1])
    for start in (first, second):
        assert start.keys() == {"type", "run_id", "collection_mode", "scope", "state", "bindings"}
        assert (start["type"], start["collection_mode"], start["bindings"]) == ("START", "incremental", {})
        assert start["scope"] == {"streams": [{"name": "alpha"}, {"name": "beta"}]}
    assert first["run_id"] != second["run_id"]
    assert first["state"] is None
    assert second["state"] == {"alpha": json.loads(EXACT), "beta": json.loads(EXACT)}


@pytest.mark.clause("CP-414", "CP-308")
def test_one_stream_may_be_asked_for(headwater):
    """`--stream` narrows the run; the others keep their cursors."""
    notes = headwater.file("notes")
    headwater.collect("notes_start.py", words=[str(notes), '{"n":0}'])
    headwater.collect("notes_start.py", "--stream", "beta", words=[str(notes), '{"n":1}'])
    start = json.loads(notes.read_text().splitlines()[1])
    assert start["scope"] == {"streams": [{"name": "beta"}]}
    assert headwater.cursors() == {"alpha": {"n": 0}, "beta": {"n": 1}}


@pytest.mark.clause("CP-310")
def test_a_scope_file_is_completed_and_sent(headwater):
    """Fields that every record needs are added; the rest is sent as it was asked for."""
    scope = headwater.place / "scope.json"
    scope.write_text('{"streams":[{"name":"alpha","fields":["text"],"resources":["alpha1"]}]}')
    notes = headwater.file("notes")
    headwater.collect("notes_start.py", "--scope", str(scope), words=[str(notes), "{}"])
    start = json.loads(notes.read_text())
    assert start["scope"] == {"streams": [{"name": "alpha", "resources": ["alpha1"], "fields": ["id", "text"]}]}


def test_a_full_refresh_starts_from_nothing(headwater):
    """`--mode full_refresh` sends no state, and the cursors commit as ever."""
    notes = headwater.file("notes")
    headwater.collect("notes_start.py", words=[str(notes), '{"n":0}'])
    headwater.collect("notes_start.py", "--mode", "full_refresh", words=[str(notes), '{"n":1}'])
    start = json.loads(notes.read_text().splitlines()[1])
    assert (start["collection_mode"], start["state"]) == ("full_refresh", None)
    assert headwater.cursors() == {"alpha": {"n": 1}, "beta": {"n": 1}}


@pytest.mark.clause("CP-052", "CP-053", "CP-057")
def test_bindings_are_announced_by_empty_objects(headwater):
    """What the manifest asks for and this host has is announced; what it has not and may lack is left out."""
    wanted = {name: {"required": True} for name in ("network", "filesystem", "loopback_listen", "interactive")}
    bindings = {**wanted, "example.com/gpu": {"required": False}}
    manifest = headwater.manifest(runtime_requirements={"bindings": bindings})
    answers = headwater.place / "answers.json"
    answers.write_text('{"answers":[]}')
    notes = headwater.file("notes")
    given = ["--answer-file", str(answers)]
    assert headwater.collect("notes_start.py", *given, words=[str(notes), "{}"], manifest=manifest).status == 0
    assert json.loads(notes.read_text())["bindings"] == {name: {} for name in wanted}


@pytest.mark.clause("CP-050", "CP-057", "CLI-002", "CLI-007", "CLI-034")
@pytest.mark.parametrize("binding", ["browser_automation", "example.com/gpu", "interactive"])
def test_a_binding_that_is_missing_is_named_before_anything_starts(headwater, binding, monkeypatch):
    """A connector that cannot work here is not started. Nobody at the terminal means no `interactive`."""
    (headwater.place / "bin").mkdir()
    (headwater.place / "bin" / "touch").symlink_to("/bin/touch")
    monkeypatch.setenv("PATH", str(headwater.place / "bin"))  # a machine without a browser
    manifest = headwater.manifest(runtime_requirements={"bindings": {binding: {"required": True}}})
    touched = headwater.file("touched")
    answer = headwater.collect("touches.sh", words=[str(touched)], manifest=manifest)
    assert answer.status == 1
    assert answer.failure["code"] == "binding_unavailable"
    assert binding in answer.failure["message"]
    assert touched.read_text() == ""
    assert json.loads(answer.stderr)["error"]["code"] == "failure"


CHILD = {"schema": {"type": "object"}, "primary_key": ["id"], "semantics": "mutable_state"}
WINDOW, PARTS = "checkpoint_window", "parent_detail_accounting"


@pytest.mark.clause("CP-038", "CP-033", "CLI-006")
@pytest.mark.parametrize(
    "streams",
    [
        [{"name": "a", "state_stream": "a", "coverage_strategy": WINDOW}],
        [{"name": "a", "parent_streams": ["a"], "coverage_strategy": PARTS}],
        [{"name": "a", "state_stream": "ghost", "coverage_strategy": WINDOW}],
        [{"name": "a"}, {"name": "b", "parent_streams": ["a", "ghost"], "coverage_strategy": PARTS}],
        [{"name": "a"}, {"name": "b", "parent_streams": ["a", "a"], "coverage_strategy": PARTS}],
        [{"name": "a"}, {"name": "b", "parent_streams": ["a"], "state_stream": "a", "coverage_strategy": PARTS}],
        [{"name": "a"}, {"name": "b", "parent_streams": [], "coverage_strategy": PARTS}],
        [
            {"name": "a", "state_stream": "b", "coverage_strategy": WINDOW},
            {"name": "b", "state_stream": "a", "coverage_strategy": WINDOW},
        ],
        [{"name": "a"}, {"name": "b", "state_stream": "a"}],
        [{"name": "a"}, {"name": "b", "parent_streams": ["a"], "coverage_strategy": WINDOW}],
    ],
)
def test_a_bad_manifest_starts_nothing(headwater, streams):
    """A refused manifest begins no run, and no file of the store is made or changed."""
    manifest = headwater.manifest(streams=[{**CHILD, "name": "ok"}, *({**CHILD, **stream} for stream in streams)])
    touched = headwater.file("touched")
    answer = headwater.collect("touches.sh", "--stream", "ok", words=[str(touched)], manifest=manifest)
    assert (answer.status, answer.failure["code"], answer.failure["kind"]) == (2, "invalid_manifest", "usage")
    assert touched.read_text() == ""
    assert not headwater.state.exists()


@pytest.mark.clause("CLI-006", "CP-300")
@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("invalid_scope", ["--stream", "nonsuch"]),
        ("invalid_scope", ["--scope", "SCOPE"]),
        ("invalid_input", ["--scope", "nowhere"]),
        ("invalid_input", ["--answer-file", "nowhere"]),
    ],
)
def test_what_does_not_fit_is_exit_2(headwater, code, options):
    """A scope without a stream, a stream that is not declared, a file that is not there: nothing is started."""
    scope = headwater.place / "scope.json"
    scope.write_text('{"streams":[]}')
    touched = headwater.file("touched")
    typed = [option.replace("SCOPE", str(scope)) for option in options]
    answer = headwater.collect("touches.sh", *typed, words=[str(touched)])
    assert (answer.status, answer.failure["code"]) == (2, code)
    assert touched.read_text() == ""


@pytest.mark.clause("CLI-007", "CLI-034")
def test_a_program_that_cannot_start_is_a_failed_run(headwater):
    """The run is kept with its reason, and the exit status is 1."""
    answer = headwater.type("collect", "--manifest", str(headwater.manifest()), "--", "/nonexistent/program")
    assert (answer.status, answer.failure["code"]) == (1, "connector_unavailable")
    run = headwater.type("runs", "show").result
    assert (run["status"], run["cause"]) == ("failed", "not_started")


@pytest.mark.clause("CLI-001", "CLI-002", "CLI-003", "CLI-013")
def test_envelopes_have_two_members(headwater):
    """A success is one line on stdout, a failure one on stderr, and the other side is empty."""
    good = headwater.collect("good.sh")
    assert good.stderr == ""
    assert good.stdout.count("\n") == 1
    assert json.loads(good.stdout).keys() == {"ok", "result"}
    bad = headwater.collect("leaves_early.sh")
    assert bad.stdout == ""
    assert bad.stderr.count("\n") == 1
    envelope = json.loads(bad.stderr)
    assert (envelope["ok"], envelope.keys(), envelope["error"].keys()) == (False, {"ok", "error"}, {"code", "data"})
    assert {"kind", "code", "stage", "next_action"} <= envelope["error"]["data"].keys()


@pytest.mark.clause("CLI-005")
def test_a_failed_run_that_is_asked_about_is_no_failure(headwater):
    """Telling the truth about a failure is a success."""
    assert headwater.collect("leaves_early.sh").status == 1
    answer = headwater.type("runs", "explain")
    assert (answer.status, answer.result["status"], answer.result["cause"]) == (0, "failed", "no_done")
