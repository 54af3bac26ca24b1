"""`setup check`: what this machine has, told without changing anything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "-shm" not in path.name}


def states(result) -> dict[str, str]:
    return {row["name"]: row["state"] for row in result["prerequisites"]}


@pytest.mark.clause("CLI-001")
def test_a_check_of_a_new_machine_makes_nothing(headwater):
    """One object, nothing on stderr, no file; what is not there yet is unknown, and no failure."""
    answer = headwater.type("setup", "check")
    assert (answer.stderr, answer.stdout.count("\n")) == ("", 1)
    result = answer.result
    assert result.keys() == {"config_path", "state_path", "os", "keyring", "prerequisites", "confinement"}
    assert result["config_path"] == str(headwater.place / "config.toml")
    assert result["state_path"] == str(headwater.state)
    assert states(result)["metadata"] == "unknown"
    assert states(result)["configuration"] == "unknown"
    assert list(headwater.place.iterdir()) == []


def test_a_check_after_a_run_changes_no_byte(headwater):
    """The database opens, the folders are private, and everything is as it was."""
    assert headwater.collect("good.sh").status == 0
    before = files(headwater.place)
    found = states(headwater.type("setup", "check").result)
    assert [found[name] for name in ("metadata", "sqlite", "private_folders")] == ["ready"] * 3
    assert files(headwater.place) == before


def test_what_is_wrong_is_told_and_is_no_failure_of_the_command(headwater):
    """A spoiled database, a folder that others enter: exit status 0, and the one thing to do about it."""
    assert headwater.collect("good.sh").status == 0
    headwater.state.chmod(0o755)
    (headwater.state / "headwater.db").write_bytes(b"no database at all" * 500)
    rows = {row["name"]: row for row in headwater.type("setup", "check").result["prerequisites"]}
    assert (rows["metadata"]["state"], rows["private_folders"]["state"]) == ("failed", "failed")
    assert rows["private_folders"]["command"] == f"chmod 700 {headwater.state}"


@pytest.mark.parametrize("found", [True, False])
def test_a_browser_is_looked_for(headwater, monkeypatch, found):
    """Without one only some connectors do not start; and root is told that it has no sandbox."""
    place = headwater.place / "bin"
    place.mkdir()
    if found:
        (place / "chromium").write_text("#!/bin/sh\n")
        (place / "chromium").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    rows = {row["name"]: row for row in headwater.type("setup", "check").result["prerequisites"]}
    assert rows["browser"]["state"] == ("ready" if found else "unknown")
    assert (str(place / "chromium") in rows["browser"]["detail"]) is found
    assert ("no sandbox" in rows["browser"]["detail"]) is (found and os.geteuid() == 0)


def test_a_configuration_that_does_not_load_is_refused(headwater):
    """It is no row of the table: exit status 2."""
    path = headwater.place / "collect.toml"
    path.write_text("format = ")
    path.chmod(0o600)
    answer = headwater.type("setup", "check")
    assert (answer.status, answer.failure["code"]) == (2, "invalid_configuration")


def test_the_way_that_is_used_is_the_first_that_works(headwater):
    """Each way is there with yes or no, a reason for each no, and what it holds."""
    found = headwater.type("setup", "check").result["confinement"]
    assert [way["name"] for way in found["ways"]] == [
        "bubblewrap",
        "landlock+namespaces",
        "landlock",
        "seccomp",
        "none",
    ]
    assert found["used"] == next(way["name"] for way in found["ways"] if way["works"])
    assert all(bool(way["why"]) != way["works"] for way in found["ways"])


def test_without_bubblewrap_the_command_to_get_it_is_told(headwater, tmp_path):
    """PATH decides what is there: with one that has an installer and no bwrap, it is the next command."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "apt-get").symlink_to("/bin/true")
    environment = {"HOME": str(tmp_path), "PATH": str(tools)}
    done = subprocess.run(headwater.words("setup", "check"), env=environment, capture_output=True, timeout=60)
    assert b'"used":"bubblewrap"' not in done.stdout
    assert b'"command":"sudo apt-get install bubblewrap"' in done.stdout
    assert b"bubblewrap is not installed." in done.stdout


def test_a_person_reads_a_table_and_what_to_do_next(headwater):
    """The same for people."""
    words = [sys.executable, "-m", "headwater", "--state-dir", str(headwater.state), "setup", "check"]
    environment = {"HOME": str(headwater.place), "PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "confinement" in done.stdout
    assert "Next: headwater demo" in done.stdout.replace("./headwater", "headwater")


def test_where_there_are_no_namespaces_landlock_holds_and_connectors_run(headwater):
    """As on a machine that keeps them from programs: each way says why not, and a run succeeds by the next one."""
    words = ["bwrap", "--unshare-user", "--disable-userns", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    apart = [*words, "--proc", "/proc", "--"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        assert "CI" not in os.environ
        pytest.skip("needs bubblewrap 0.8: run scripts/test as root, or install it")
    found = headwater.run([*apart, *headwater.words("setup", "check")], "").result["confinement"]
    assert found["used"] == "landlock"
    assert [way["name"] for way in found["ways"] if way["why"]] == ["bubblewrap", "landlock+namespaces"]
    assert headwater.run([*apart, *headwater.guest("good.sh")], "").result["status"] == "succeeded"
    assert headwater.keys() == {"a0"}
