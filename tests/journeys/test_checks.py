"""`connectors check` as an author types it: the bundled connectors and one in shell pass, and a bad one is told why."""

import json
import mailbox
import sqlite3
import subprocess
import sys
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import headwater.connectors

BUNDLED = Path(headwater.connectors.__path__[0])
GUESTS = Path(__file__).parents[1] / "guests"


def passes(answer: Any, *shown: str) -> None:
    """Assert that a check conforms, and that it showed these clauses."""
    result = answer.result
    verdicts = {row["clause"]: row["verdict"] for row in result["clauses"]}
    assert result["conforms"]
    assert result["left_out"] == {}
    assert "fail" not in verdicts.values()
    assert [clause for clause in shown if verdicts[clause] != "pass"] == []


def test_git_passes(headwater: Any, tmp_path: Path) -> None:
    """A repository with a few commits, through every pack."""
    repository = tmp_path / "repository"
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run([*git, "init", "-q", str(repository)], check=True)
    for number in range(5):
        words = [*git, "commit", "-q", "--allow-empty", "-m", f"Number {number}"]
        subprocess.run(words, cwd=repository, check=True)
    answer = headwater.type("connectors", "check", str(BUNDLED / "git"), "--set", f"path={repository}")
    passes(answer, "CP-410", "CP-447", "CP-219", "CP-216", "CP-311", "CP-312", "CP-317", "CP-405", "CP-013")


def test_mail_passes(headwater: Any, tmp_path: Path) -> None:
    """A Maildir whose messages have attachments, through every pack."""
    folder = mailbox.Maildir(tmp_path / "mail")
    for number in range(4):
        message = EmailMessage()
        message["Subject"], message["Date"] = f"Number {number}", f"Tue, 1 Oct 2024 10:0{number}:00 +0000"
        message.set_content("Hello")
        message.add_attachment(b"%d" % number, maintype="image", subtype="png", filename=f"{number}.png")
        folder.add(message)
    answer = headwater.type("connectors", "check", str(BUNDLED / "mail"), "--set", f"path={tmp_path / 'mail'}")
    passes(answer, "CP-410", "CP-447", "CP-515", "CP-516", "CP-317", "CORE-026")


def test_browser_history_passes(headwater: Any, tmp_path: Path) -> None:
    """A profile with a few visits, through every pack."""
    with sqlite3.connect(tmp_path / "History") as database:
        database.executescript(
            "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT, title TEXT, visit_count INTEGER, typed_count INTEGER,"
            " last_visit_time INTEGER, hidden INTEGER);"
            "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER, from_visit INTEGER,"
            " transition INTEGER, visit_duration INTEGER);"
        )
        for number in range(1, 7):
            at = 13_344_473_600_000_000 + number * 40 * 3_600_000_000
            page = (number, f"https://example.org/{number}", "A page", 1, 0, at, 0)
            database.execute("INSERT INTO urls VALUES (?,?,?,?,?,?,?)", page)
            database.execute("INSERT INTO visits VALUES (?,?,?,0,0,0)", (number, number, at))
    database.close()
    place = f"profile={tmp_path}"
    answer = headwater.type("connectors", "check", str(BUNDLED / "browser_history"), "--set", place)
    passes(answer, "CP-410", "CP-447", "CP-312", "CP-317", "CP-405")


def test_the_demo_passes(headwater: Any) -> None:
    """Over HTTP, with a lane: it survives a kill, resumes, and says that its provider cannot be reached."""
    words = [sys.executable, str(BUNDLED / "demo" / "provider.py"), "--round", "1", "--delay-ms", "0"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as provider:
        assert provider.stdout is not None
        place = f"base_url={json.loads(provider.stdout.readline())['base_url']}"
        packs = [word for pack in ("start", "resumed", "kill", "no-network") for word in ("--pack", pack)]
        answer = headwater.type("connectors", "check", str(BUNDLED / "demo"), "--set", place, *packs)
        provider.kill()
    passes(answer, "CP-410", "CP-447", "CP-515", "CP-516", "CP-405", "CP-409")


def test_a_connector_in_shell_passes(headwater: Any) -> None:
    """In any language, without an SDK; what it cannot narrow it says aloud."""
    answer = headwater.type("connectors", "check", str(GUESTS / "shell"))
    passes(answer, "CP-410", "CP-447", "CP-058", "CP-317", "CP-013")


def test_a_bad_connector_is_told_what_where_and_what_to_do(headwater: Any) -> None:
    """Status 1; the failed clause with its pack, its line, what was seen and the remedy; the same in JSON."""
    words = ["connectors", "check", str(GUESTS / "sins"), "--set", "sin=saves_early", "--pack", "kill", "--seed", "7"]
    failure = headwater.type(*words)
    assert failure.status == 1
    assert failure.failure["code"] == "not_conforming"
    (row,) = [row for row in failure.failure["clauses"] if row["verdict"] == "fail"]
    assert (row["clause"], row["level"], row["pack"]) == ("CP-410", "must", "kill")
    assert row["line"] >= 1
    assert row["remedy"] == "Send STATE behind all that it covers."
    text = type(headwater)(headwater.place, "human").type(*words).stderr
    assert "CP-410  A cursor comes after its records." in text
    assert f"seen in kill, line {row['line']}: {row['seen']}" in text
    assert "do: Send STATE behind all that it covers." in text
    assert "--seed 7" in text


def test_a_failed_should_is_told_and_conforms(headwater: Any) -> None:
    """Only a must that fails makes the exit status 1."""
    words = ["connectors", "check", str(GUESTS / "sins"), "--set", "sin=saves_late", "--pack", "start"]
    result = headwater.type(*words).result
    assert result["conforms"]
    assert [row["clause"] for row in result["clauses"] if row["verdict"] == "fail"] == ["CP-409"]


def test_the_same_seed_kills_at_the_same_lines(headwater: Any) -> None:
    """A failure can be seen again."""
    words = ["connectors", "check", str(GUESTS / "shell"), "--pack", "kill"]
    first = headwater.type(*words).result
    again = headwater.type(*words, "--seed", str(first["seed"])).result
    seen = [[row["seen"] for row in result["clauses"] if row["clause"] == "CP-410"] for result in (first, again)]
    assert seen[0] == seen[1]
    assert "killed behind lines" in seen[0][0]


def test_a_pack_that_there_is_not_is_refused(headwater: Any) -> None:
    """Before anything is started, with the names there are."""
    answer = headwater.type("connectors", "check", str(GUESTS / "shell"), "--pack", "slwo")
    assert answer.status == 2
    assert answer.failure["code"] == "invalid_input"
    assert "determinism" in answer.failure["message"]


def test_a_connector_that_cannot_run_leaves_its_packs_out(headwater: Any) -> None:
    """Nothing is compared with a run that failed: the packs are named, and nothing passes for them."""
    words = ["connectors", "check", str(GUESTS / "sins"), "--set", "sin=prints", "--pack", "slow"]
    data = headwater.type(*words).failure
    assert data["left_out"] == {"slow": "The whole run did not succeed."}
    failed = {row["clause"]: row for row in data["clauses"] if row["verdict"] == "fail"}
    assert failed.keys() == {"CP-101", "CP-204"}
    assert failed["CP-101"]["line"] == 1


@pytest.mark.parametrize("answers", ["fixture", "file"])
def test_answers_come_from_a_fixture_or_a_file(headwater: Any, tmp_path: Path, answers: str) -> None:
    """`fixtures/answers.json` in the folder, or what is named."""
    folder = tmp_path / "asks"
    folder.mkdir()
    for file in (GUESTS / "sins").iterdir():
        (folder / file.name).write_bytes(file.read_bytes()) if file.is_file() else None
    prepared = (folder / "fixtures" / "answers.json") if answers == "fixture" else tmp_path / "answers.json"
    prepared.parent.mkdir(exist_ok=True)
    prepared.write_text('{"answers": [{"kind": "otp", "data": {"code": "739105"}}]}')
    more = [] if answers == "fixture" else ["--answer-file", str(prepared)]
    answer = headwater.type("connectors", "check", str(folder), "--set", "asks=true", "--pack", "otp", *more)
    passes(answer, "CP-704", "CP-705", "CP-706", "CP-711", "CP-408", "CP-537")
