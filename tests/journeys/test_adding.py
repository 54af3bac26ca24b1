"""Somebody else's connector, from adding it to taking it away: what a person types, and what stays."""

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import needs
import pytest

GUESTS = Path(__file__).parents[1] / "guests"
FLEET = Path(__file__).parents[1] / "fleet" / "pdpp-reference"
PACKAGE = 'format = "headwater-connector/1"\ncommand = ["python", "connector.py"]\n'
ONE = """import json, sys
start = json.loads(sys.stdin.readline())
seen = (start["state"] or {}).get("alpha", {}).get("n", 0)
def say(**message): print(json.dumps(message), flush=True)
say(type="RECORD", stream="alpha", key=str(seen), data={"id": str(seen)}, emitted_at="2026-01-02T03:04:05Z")
say(type="STATE", stream="alpha", cursor={"n": seen + 1})
say(type="DONE", status="succeeded", records_emitted=1)
"""
GREETS = """from greeting import WORD

from headwater.sdk import Connector

connector = Connector()


@connector.stream("alpha")
def alpha(stream):
    yield {"id": WORD}


connector.run()
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A connector that numbers its records on from its cursor."""
    root = tmp_path / "source"
    root.mkdir()
    shutil.copy(GUESTS / "manifest.json", root)
    (root / "connector.py").write_text(ONE)
    (root / "connector.toml").write_text(PACKAGE)
    return root


def change_manifest(root: Path, **members: Any) -> None:
    """Change members of a connector's manifest."""
    path = root / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def test_from_adding_to_removing(headwater, source):
    """Added, run, upgraded, run on, removed: cursors and records outlive every version, and the connector."""
    added = headwater.type("connectors", "add", str(source), "--name", "counter").result
    assert headwater.type("collect", "counter/me").status == 0
    assert headwater.keys(instance="counter/me") == {"0"}
    change_manifest(source, version="2.0")
    upgraded = headwater.type("connectors", "upgrade", "counter", str(source)).result
    assert (upgraded["changed"], upgraded["version"]) == (True, "2.0")
    assert upgraded["digest"] != added["digest"]
    assert headwater.type("collect", "counter/me").status == 0
    assert headwater.keys(instance="counter/me") == {"0", "1"}
    removed = headwater.type("connectors", "remove", "counter").result
    assert removed == {"connector": "counter", "instances": ["counter/me"], "kept": ["records", "cursors"]}
    assert headwater.keys(instance="counter/me") == {"0", "1"}
    assert headwater.cursors("counter/me") == {"alpha": {"n": 2}}
    assert headwater.type("collect", "counter/me").failure["code"] == "not_found"
    headwater.type("connectors", "add", str(source), "--name", "counter")
    assert headwater.type("collect", "counter/me").status == 0
    assert headwater.keys(instance="counter/me") == {"0", "1", "2"}


@pytest.mark.clause("CP-906")
def test_two_spellings_of_an_id_are_two_connectors(headwater, source):
    """Both are added, each goes on from cursors of its own, and neither takes the other's place."""
    for host in ("org", "dev"):
        change_manifest(source, connector_id=f"https://registry.pdpp.{host}/connectors/counter")
        added = headwater.type("connectors", "add", str(source), "--name", f"counter-{host}").result
        assert added["connector_id"] == f"https://registry.pdpp.{host}/connectors/counter"
    for name in ("counter-org/me", "counter-org/me", "counter-dev/me"):
        assert headwater.type("collect", name).status == 0
    assert headwater.cursors("counter-org/me") == {"alpha": {"n": 2}}
    assert headwater.cursors("counter-dev/me") == {"alpha": {"n": 1}}
    answer = headwater.type("connectors", "upgrade", "counter-org", str(source), "--accept")
    assert (answer.status, answer.failure["code"]) == (2, "invalid_input")


def test_list_and_show_tell_origin_digest_and_version(headwater, source):
    """Of an added one and of a bundled one."""
    change_manifest(source, version="1.5")
    added = headwater.type("connectors", "add", str(source), "--name", "counter").result
    listed = {row["connector"]: row for row in headwater.type("connectors", "list").result["connectors"]}
    seen = {name: listed["counter"][name] for name in ("origin", "version", "digest")}
    assert seen == {"origin": "added", "version": "1.5", "digest": added["digest"]}
    assert (listed["git"]["origin"], listed["git"]["digest"]) == ("bundled", "")
    shown = headwater.type("connectors", "show", "counter").result
    assert (shown["origin"], shown["digest"], shown["changes"]) == ("added", added["digest"], [])


def test_a_changed_file_stops_the_run_until_it_is_accepted(headwater, source):
    """The refusal names the file and the command; nothing was started."""
    headwater.type("connectors", "add", str(source), "--name", "counter")
    file = next((headwater.state / "connectors").glob("counter/connector.py"))
    file.write_text(ONE.replace("2026-01-02", "2026-01-03"))
    failure = headwater.type("collect", "counter/me").failure
    assert failure["code"] == "connector_changed"
    assert failure["changes"] == ["connector.py was changed"]
    assert headwater.type("connectors", "show", "counter").result["changes"] == ["connector.py was changed"]
    assert headwater.type("runs", "list").status == 1  # nothing was ever run
    assert headwater.type(*failure["command"].split()[1:]).result["changed"] is True
    assert headwater.type("collect", "counter/me").status == 0


def test_a_newly_asked_binding_needs_accept(headwater, source):
    """Refused with what it asks for; given with --accept."""
    headwater.type("connectors", "add", str(source), "--name", "counter")
    change_manifest(source, runtime_requirements={"bindings": {"network": {"required": True}}})
    failure = headwater.type("connectors", "upgrade", "counter", str(source)).failure
    assert (failure["code"], failure["asks"]) == ("consent_needed", ["the binding network"])
    answer = headwater.type("connectors", "upgrade", "counter", str(source), "--accept")
    assert answer.result["asks"] == ["the binding network"]


def test_a_run_that_is_active_keeps_its_connector(headwater, tmp_path):
    """Neither removed nor upgraded under a run."""
    source = tmp_path / "source"
    source.mkdir()
    shutil.copy(GUESTS / "manifest.json", source)
    (source / "connector.toml").write_text('format = "headwater-connector/1"\ncommand = ["/bin/sh", "waits.sh"]\n')
    shutil.copy(GUESTS / "silent.sh", source / "waits.sh")
    headwater.type("connectors", "add", str(source), "--name", "slow")
    environment = {"HOME": str(headwater.place), "PATH": os.environ["PATH"]}
    run = subprocess.Popen(headwater.words("collect", "slow/me"), env=environment, stderr=subprocess.PIPE)
    try:
        lock = headwater.state / "locks" / "slow--me.lock"
        while not lock.exists() or headwater.type("runs", "list", "--status", "running").status != 0:
            assert run.poll() is None
        for words in (("remove", "slow"), ("upgrade", "slow", str(source))):
            assert headwater.type("connectors", *words).failure["code"] == "run_active"
    finally:
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
    assert headwater.type("connectors", "remove", "slow").status == 0


def test_one_change_at_a_time(headwater, source):
    """Two that add at once do not sweep away each other's work: the second is told to wait."""
    locks = headwater.state / "locks"
    locks.mkdir(parents=True)
    with (locks / "connectors.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failure = headwater.type("connectors", "add", str(source)).failure
    assert (failure["code"], failure["message"]) == ("run_active", "Another change is under way.")
    assert headwater.type("connectors", "add", str(source)).status == 0


def test_packages_of_its_own(headwater, source):
    """A hashed requirements file: an environment of its own, which the run is in, and which has the SDK too."""
    wheels = source / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "greeting-1.0-py3-none-any.whl", "w") as archive:
        info = "greeting-1.0.dist-info"
        archive.writestr("greeting.py", "WORD = 'hello'\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = sha256((wheels / "greeting-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    wanted = f"--no-index\n--find-links ./wheels\ngreeting==1.0 --hash=sha256:{digest}\n"
    (source / "requirements.txt").write_text(wanted)
    (source / "connector.py").write_text(GREETS)
    added = headwater.type("connectors", "add", str(source), "--name", "counter").result
    assert added["installed"] == [".venv"]
    assert headwater.type("collect", "counter/me").status == 0
    assert headwater.keys(instance="counter/me") == {"hello"}
    assert headwater.type("connectors", "show", "counter").result["changes"] == []


def test_an_option_reaches_the_program_as_a_variable(headwater, source):
    """For a program that knows nothing of Headwater's options."""
    (source / "connector.toml").unlink()
    (source / "connector.py").write_text("import os\nassert os.environ['PLACE'] == '/data'\n" + ONE)
    headwater.type(
        "connectors", "add", str(source), "--name", "counter", "--variable", "PLACE", "--", "python", "connector.py"
    )
    assert headwater.type("collect", "counter/me", "--set", "place=/data").status == 0


def test_the_compatibility_mode_is_named_at_add_and_counted(headwater, tmp_path):
    """With the name, its own messages are read and shown as counts; without it, the first of them ends the run."""
    source = tmp_path / "source"
    source.mkdir()
    shutil.copy(GUESTS / "manifest.json", source)
    shutil.copy(GUESTS / "reference.py", source)
    command = ("--", "python", "reference.py")
    headwater.type("connectors", "add", str(source), "--name", "closed", *command)
    assert headwater.type("collect", "closed/me").failure["cause"] == "unknown_type"
    headwater.type("connectors", "add", str(source), "--name", "known", "--compatibility", "pdpp-reference/1", *command)
    run = headwater.type("collect", "known/me").result["run_id"]
    facts = headwater.type("runs", "explain", run).result["facts"]
    counted = {"ASSISTANCE": 1, "ASSISTANCE_STATUS": 1, "DETAIL_GAPS_PAGE_REQUEST": 1}
    assert facts["extensions"] == counted
    assert headwater.cursors("known/me") == {"alpha": {"n": 1}}


def test_nothing_is_added_when_a_fault_is_found(headwater, source):
    """Every reason at once, each at its place, and no trace."""
    change_manifest(source, connector_id=7)
    (source / "connector.toml").write_text("format = 3\n")
    (source / "link").symlink_to("/etc")
    answer = headwater.type("connectors", "add", str(source))
    assert answer.status == 2
    assert {fault["pointer"] for fault in answer.failure["faults"]} == {
        "manifest.json/connector_id",
        "connector.toml",
        "connector.toml/command",
        "files/link",
    }
    assert not (headwater.state / "connectors").exists()


def typed_on_the_page(headwater: Any, about: str) -> None:
    """Type the commands of the page that are about a connector, at home in the place of this Headwater."""
    page = Path(__file__).parents[2] / "docs" / "howto" / "use-somebody-elses-connector.md"
    typed = re.findall(r"^    \./headwater (.+)$", page.read_text(), re.MULTILINE)
    commands = [command for command in typed if re.search(about, command)]
    assert len(commands) >= 3
    for command in commands:
        answer = headwater.type(*shlex.split(command.replace("~", str(headwater.place))))
        assert answer.status == 0, f"{command}\n{answer.stderr}"


def test_the_commands_of_the_page_work(headwater, source):
    """Added, collected, upgraded and removed, as the page has it."""
    (source / "connector.toml").write_text(PACKAGE + '[options.properties.path]\ntype = "string"\nformat = "path"\n')
    needs = {"bindings": {"filesystem": {"required": True}}}
    change_manifest(source, connector_id="https://connectors.example/notes", runtime_requirements=needs)
    for name in ("notes", "notes-2"):
        shutil.copytree(source, headwater.place / "downloads" / name)
    typed_on_the_page(headwater, "notes")


@needs.node
def test_the_commands_of_the_page_about_a_reference_connector_work(headwater):
    """A manifest, a program and a lock file are enough."""
    folder = headwater.place / "src" / "calendar"
    shutil.copytree(FLEET, folder)
    shutil.copy(folder / "manifests" / "ical.json", folder / "manifest.json")
    (folder / "index.ts").write_text('import "./connectors/ical/index.ts";\n')
    (headwater.place / "calendars").mkdir()
    typed_on_the_page(headwater, r"\bical|calendar")
