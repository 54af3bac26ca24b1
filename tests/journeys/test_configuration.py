"""`setup init`, `list`, `instances list` and `describe`: what is configured, made once, and looked at."""

import fcntl
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib

import pytest
from configuration.documents import document, entry, write

SUPPORT = '[connectors.matrix.instances.support]\nalias = "old"\nendpoint = "https://a.example"\n'
OLD = {"option": "--adapter", "replacement": ["--connector", "--instance"]}


def state_of(place):
    """Return every file below a folder, with its bytes."""
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.clause("CLI-100", "CLI-105", "CLI-106", "CLI-104", "CLI-102")
def test_init_makes_a_configuration_once(headwater):
    """Owner-only, in the newest format, with nothing in it; the second time nothing is touched."""
    made = headwater.type("setup", "init").result
    assert made.keys() == {"disposition", "config_path", "state_path", "os"}
    assert (made["disposition"], made["config_path"]) == ("created", str(headwater.place / "config.toml"))
    path = headwater.place / "config.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    written = {"format": "connectors-local/5", "owner_uid": os.geteuid(), "adapters": {}}
    assert tomllib.loads(path.read_text()) == written
    assert headwater.state.stat().st_mode & 0o777 == 0o700
    before = state_of(headwater.place)
    again = headwater.type("setup", "init")
    assert (again.status, again.failure["code"], again.failure["next_action"]) == (1, "configuration_exists", "none")
    assert again.failure["stage"] == "configuration"
    assert state_of(headwater.place) == before


@pytest.mark.clause("CLI-103", "CLI-102")
def test_init_makes_the_database_that_is_missing(headwater):
    """A configuration that loads stays byte for byte."""
    path = write(headwater.place, f"# mine\n{document(SUPPORT)}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert headwater.type("setup", "init").result["disposition"] == "state_initialized"
    assert (headwater.state / "headwater.db").is_file()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


@pytest.mark.clause("CLI-104", "CLI-102")
@pytest.mark.parametrize(("text", "mode"), [("format = ", 0o600), (document(), 0o644), (document(format_=9), 0o600)])
def test_init_does_not_touch_what_cannot_be_read(headwater, text, mode):
    """No database is made beside it."""
    write(headwater.place, text, mode)
    before = state_of(headwater.place)
    assert headwater.type("setup", "init").failure["code"] == "configuration_exists"
    assert state_of(headwater.place) == before


@pytest.mark.clause("CLI-104")
def test_init_leaves_a_database_alone_that_it_does_not_know(headwater):
    """It is not opened, and not migrated."""
    headwater.state.mkdir(mode=0o700)
    (headwater.state / "headwater.db").write_bytes(b"somebody's")
    assert headwater.type("setup", "init").result["disposition"] == "created"
    assert (headwater.state / "headwater.db").read_bytes() == b"somebody's"


@pytest.mark.clause("CLI-100")
def test_init_follows_no_link(headwater, tmp_path):
    """A linked parent is refused, and nothing is made."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    words = headwater.words("setup", "init")
    words[words.index("--config") + 1] = str(tmp_path / "link" / "new" / "config.toml")
    refused = headwater.run(words, "")
    assert (refused.status, refused.failure["configuration_rule"]) == (2, "config_not_private")
    assert list((tmp_path / "real").iterdir()) == []
    assert not headwater.state.exists()


@pytest.mark.clause("CLI-101")
def test_of_several_inits_one_makes_it(headwater):
    """The others are told that it is there."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(headwater.type("setup", "init"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [0, 1, 1, 1]
    assert all(answer.failure["code"] == "configuration_exists" for answer in answers if answer.status)


@pytest.mark.clause("CLI-250", "CLI-253", "CLI-254", "CLI-255", "CLI-256", "CLI-257", "CLI-212", "CLI-287")
def test_what_is_configured_is_listed(headwater):
    """Connectors with their instances; instances by exactly five members; an entry without a connector apart."""
    catalog = {"adapter_id": '"catalog"', "executable": '{path = "/c", sha256 = "' + "a" * 64 + '", args = []}'}
    body = SUPPORT + "[connectors.matrix.instances.a]\n[connectors.unknown.instances.i]\nprofile = 'p'\n"
    write(
        headwater.place,
        document(body + entry("forge", startup='"automatic"') + entry("z", **catalog) + entry("y", **catalog)),
    )
    headwater.type("instances", "add", "mail/home", "--set", f"path={headwater.place}")
    rows = {row["connector"]: row for row in headwater.type("list").result["connectors"]}
    assert list(rows) == sorted(rows)
    assert rows["matrix"]["instances"] == ["a", "support"]
    assert rows["mail"] == {"connector": "mail", "profiles": [], "instances": ["home"]}
    assert not {"unknown", "fixture-forge", "catalog"} & rows.keys()
    listed = headwater.type("instances", "list").result
    assert (listed["source"], listed["unmigrated"]) == ("configuration", ["y", "z"])
    names = [f"{row['connector']}/{row['instance']}" for row in listed["instances"]]
    assert names == ["fixture-forge/forge", "mail/home", "matrix/a", "matrix/support", "unknown/i"]
    assert listed["instances"][0] == {
        "connector": "fixture-forge",
        "instance": "forge",
        "instance_id": "forge-local",
        "startup": "automatic",
        "restart": "never",
    }
    people = headwater.run([word if word != "json" else "human" for word in headwater.words("list")], "").stdout
    head, *lines = people.splitlines()
    assert head.split() == ["CONNECTOR", "PROFILES", "INSTANCES"]
    assert next(line for line in lines if line.startswith("demo ")).split() == ["demo", "-", "-"]


@pytest.mark.clause("CLI-251")
@pytest.mark.parametrize("words", [[], ["--config", "/nonexistent/config.toml"]])
def test_list_needs_no_path_at_all(words):
    """Without a variable, a file or a state."""
    line = [sys.executable, "-m", "headwater", "--output", "json", *words, "list"]
    done = subprocess.run(line, env={}, capture_output=True, text=True)
    rows = json.loads(done.stdout)["result"]["connectors"]
    assert (done.returncode, done.stderr) == (0, "")
    assert all(row["instances"] == [] for row in rows)
    assert {"git", "mail"} < {row["connector"] for row in rows}


@pytest.mark.clause("CLI-057", "CLI-061")
def test_an_account_needs_a_configuration_and_collecting_does_not(headwater):
    """Where there is none, only what needs one says so, and how to make it."""
    refused = headwater.type("connections", "list", "--connector", "matrix", "--instance", "me")
    assert (refused.status, refused.failure["configuration_rule"]) == (2, "config_missing")
    assert refused.failure["command"] == "headwater setup init"
    assert "/" not in json.dumps(refused.failure)
    assert headwater.collect("good.sh").status == 0
    assert headwater.type("instances", "list").result == {"instances": [], "source": "configuration"}


@pytest.mark.clause("CLI-252", "CLI-058", "CLI-113", "CLI-177")
def test_a_file_that_is_bad_is_refused_by_every_command_alike(headwater):
    """With the same rule, whatever the command would have looked at."""
    write(headwater.place, document(), 0o644)
    commands = (["list"], ["instances", "list"], ["setup", "check"], ["instances", "describe", "a/b"])
    for words in commands:
        refused = headwater.type(*words)
        assert (refused.status, refused.failure["configuration_rule"]) == (2, "config_not_private")
    write(headwater.place, document(entry("b", private_protocol="") + entry("a", private_protocol="")))
    for words in commands:
        told = headwater.type(*words).failure
        assert (told["configuration_format"], told["instance_id"]) == ("connectors-local/5", "a-local")


@pytest.mark.clause("CLI-284", "CLI-200", "CLI-202", "CLI-204", "CLI-210", "CLI-211", "CLI-260")
def test_an_instance_is_described_by_whichever_selector(headwater):
    """The same entry, with its alias and both of its names."""
    write(headwater.place, document(SUPPORT + entry("forge"), head='default_instance = "matrix/support"\n'))
    pair = headwater.type("instances", "describe", "--connector", "matrix", "--instance", "support").result
    assert pair == headwater.type("instances", "describe").result
    assert pair == headwater.type("instances", "describe", "matrix/support").result
    assert pair == headwater.type("instances", "describe", "--adapter", "old").result
    assert (pair["adapter"], pair["connector"], pair["instance"]) == ("old", "matrix", "support")
    assert (pair["source"], pair["stale"]) == ("configuration", False)
    assert (pair["configuration"]["endpoint"], pair["configuration"]["enabled"]) == ("https://a.example", True)
    assert len(pair["configuration"]["configuration_revision"]) == 64
    forge = headwater.type("instances", "describe", "fixture-forge/forge").result["configuration"]
    assert (forge["configuration_revision"], forge["executable"]["path"]) == ("cfg-1", "/opt/forge")
    assert "descriptor" not in pair


def test_what_collecting_adds_is_described_too(headwater):
    """The options of an instance, whether the configuration lists it or not."""
    headwater.type("instances", "add", "mail/home", "--set", f"path={headwater.place}")
    told = headwater.type("instances", "describe", "mail/home").result
    assert told["adapter"] == "mail.home"
    assert told["configuration"]["collect"]["options"] == {"path": str(headwater.place)}


@pytest.mark.clause("CLI-201", "CLI-203", "CLI-205", "CLI-206", "CLI-207", "CLI-209", "CLI-226")
@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--instance", "support"], 2, "invalid_input"),
        (["--connector", "matrix"], 2, "invalid_input"),
        (["--connector", "matrix", "--instance", "support", "--adapter", "old"], 2, "invalid_input"),
        (["matrix/support", "--adapter", "old"], 2, "invalid_input"),
        (["matrix.support"], 2, "invalid_input"),
        ([], 2, "invalid_input"),
        (["--connector", "matrix", "--instance", "nope"], 1, "not_found"),
        (["--adapter", "nope"], 1, "not_found"),
        (["catalog/z"], 2, "invalid_configuration"),
    ],
)
def test_what_selects_nothing_is_refused(headwater, words, status, code):
    """Half a pair, two selectors, none, or a name that nothing has."""
    write(headwater.place, document(SUPPORT + entry("z", adapter_id='"catalog"')))
    refused = headwater.type("instances", "describe", *words)
    assert refused.status == status
    assert json.loads(refused.stderr)["error"]["data"]["code"] == code


@pytest.mark.clause("CLI-214", "CLI-215", "CLI-218", "CLI-219", "CLI-220")
def test_an_old_word_is_understood_and_told_of_once(headwater):
    """In the one envelope, whatever comes of the command; for people in lines before anything else."""
    write(headwater.place, document(SUPPORT))
    path = {"command": "adapters describe", "replacement": ["instances describe"]}
    done = headwater.type("adapters", "describe", "--adapter", "old")
    assert (json.loads(done.stdout)["deprecations"], done.stderr) == ([path, OLD], "")
    assert "deprecations" not in json.loads(headwater.type("instances", "list").stdout)
    for words in (["--adapter", "nope"], ["--adapter=old", "--bogus"], ["--adapter", "old", "--connector"]):
        assert json.loads(headwater.type("adapters", "describe", *words).stderr)["deprecations"] == [path, OLD]
    human = [
        word if word != "json" else "human" for word in headwater.words("adapters", "describe", "--adapter", "nope")
    ]
    lines = headwater.run(human, "").stderr.splitlines()
    assert lines[:3] == [
        "deprecated: adapters describe; use instances describe",
        "deprecated: --adapter; select with --connector <connector> --instance <instance>",
        "headwater: No instance of this name is configured.",
    ]
    assert sum("deprecated" in line for line in lines) == 2


@pytest.mark.clause("CLI-218", "CLI-222")
@pytest.mark.parametrize(
    "words", [["adapters", "check"], ["adapters", "add", "a/b"], ["instances", "list", "--adapter", "a"]]
)
def test_there_are_no_other_old_words(headwater, words):
    """A word that was never one is a refusal of the command line, and nothing more."""
    refused = headwater.type(*words)
    assert refused.status == 2
    assert json.loads(refused.stderr) == {"ok": False, "error": {"code": "cli_parse", "data": {}}}


@pytest.mark.clause("CLI-1000", "CLI-1018", "CLI-1019", "CLI-1020", "CLI-1023")
def test_a_migration_is_rehearsed_then_written(headwater):
    """The rehearsal writes nothing; then the file as it was lies beside it, and it all comes again to nothing."""
    args = '{path = "/c", sha256 = "' + "a" * 64 + '", args = ["--connector", "git"]}'
    work = entry("work", adapter_id='"catalog"', executable=args)
    path = write(headwater.place, f"# mine\n{document(work, 4)}")
    before = path.read_bytes()
    rehearsed = headwater.type("setup", "migrate", "--dry-run").result
    assert rehearsed == headwater.type("setup", "migrate", "--mode", "dry-run").result
    assert rehearsed.keys() == {"disposition", "configuration", "format_before", "format_after", "entries"}
    assert (rehearsed["disposition"], rehearsed["format_after"]) == ("planned", "connectors-local/5")
    assert (path.read_bytes(), [item.name for item in headwater.place.iterdir()]) == (before, ["config.toml"])
    by_alias = headwater.type("instances", "describe", "--adapter", "work").result
    done = headwater.type("setup", "migrate", "--apply").result
    assert {**rehearsed, "disposition": "applied", "backup_path": done["backup_path"]} == done
    backup = headwater.place / done["backup_path"].rpartition("/")[2]
    assert re.fullmatch(r"config\.toml\.before-migrate-\d{8}T\d{6}Z", backup.name)
    assert (backup.read_bytes(), backup.stat().st_mode & 0o777) == (before, 0o600)
    assert headwater.type("instances", "describe", "--adapter", "work").result == by_alias
    assert headwater.type("instances", "describe", "git/work").result == by_alias
    assert headwater.type("setup", "migrate", "--mode", "apply").result["disposition"] == "unchanged"
    assert len(list(headwater.place.iterdir())) == 2


@pytest.mark.clause("CLI-1000")
@pytest.mark.parametrize("words", [[], ["--dry-run", "--apply"], ["--mode", "apply", "--dry-run"], ["--mode", "now"]])
def test_one_mode_is_named(headwater, words):
    """Neither none nor two."""
    assert headwater.type("setup", "migrate", *words).status == 2


@pytest.mark.clause("CLI-120", "CLI-122", "CLI-123", "CLI-128", "CLI-129", "CLI-107")
def test_checkpoints_are_there_from_the_beginning(headwater):
    """Confirmed, it is told so; not without a database, not while the owner runs, and never unconfirmed."""
    asked = ("setup", "checkpoints-enable")
    refused = headwater.type(*asked)
    told = [refused.failure[name] for name in ("code", "kind", "stage", "next_action")]
    assert (refused.status, told) == (2, ["confirmation_required", "usage", "arguments", "retry_explicitly"])
    maybe = headwater.type(*asked, "--confirm", "maybe")
    assert json.loads(maybe.stderr) == {"ok": False, "error": {"code": "cli_input", "data": {}}}
    missing = headwater.type(*asked, "--confirm", "one-way").failure
    assert (missing["code"], missing["stage"], missing["next_action"]) == (
        "metadata_unavailable",
        "observation",
        "retry_status",
    )
    assert not headwater.state.exists()
    headwater.type("setup", "init")
    done = headwater.type(*asked, "--confirm", "one-way").result
    assert (done["disposition"], done["change"]) == ("already_enabled", "one-way")
    assert (done["newest_incompatible_release"], done["state_path"]) == ("0.32.0", str(headwater.state))
    with (headwater.state / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = headwater.type(*asked, "--confirm", "one-way")
    assert (held.status, held.failure["code"], held.failure["next_action"]) == (1, "lifecycle_conflict", "stop_owner")


@pytest.mark.clause("CLI-051", "CLI-068", "CLI-160", "CLI-174")
@pytest.mark.skipif(sys.platform != "linux", reason="the Secret Service is Linux's")
def test_check_names_the_file_and_looks_at_the_platforms_own_keyring(headwater):
    """By its socket at its place, or where the configuration says; no address of the environment counts."""
    told = headwater.type("setup", "check").result
    assert told["config_path"] == str(headwater.place / "config.toml")
    write(headwater.place, document(head=f'secret_service_socket = "{headwater.place}/none"\n'))
    told = headwater.type("setup", "check").result
    assert told["keyring"] == "unavailable"
    row = next(row for row in told["prerequisites"] if row["name"] == "keyring")
    assert (row["state"], row["next_action"]) == ("failed", "check_configuration")


WATCHED = """
import os, sys
def watch(event, _arguments):
    if event in ("socket.__new__", "socket.connect", "subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"):
        os.write(2, f"{event}\\n".encode())
sys.addaudithook(watch)
"""


@pytest.mark.clause("CLI-108", "CLI-258", "CLI-287")
@pytest.mark.parametrize(
    ("words", "is_quiet"),
    [
        (["list"], True),
        (["instances", "list"], True),
        (["instances", "describe", "matrix/support"], True),
        (["setup", "migrate", "--dry-run"], True),
        (["setup", "check"], False),  # it tries the confinement, and looks for the keyring
    ],
)
def test_looking_starts_nothing_and_asks_nobody(headwater, tmp_path_factory, words, is_quiet):
    """No process, and no socket; an entry that starts by itself does not start now. Not a byte changes."""
    write(headwater.place, document(SUPPORT + entry("forge", startup='"automatic"')))
    hook = tmp_path_factory.mktemp("hook") / "sitecustomize.py"
    hook.write_text(WATCHED)
    before = state_of(headwater.place)
    environment = {"HOME": str(headwater.place), "PATH": os.environ["PATH"], "PYTHONPATH": str(hook.parent)}
    done = subprocess.run(headwater.words(*words), env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert (done.stderr == "") is is_quiet
    assert state_of(headwater.place) == before


@pytest.mark.clause("CLI-063", "CLI-062")
def test_a_path_is_settled_before_the_owner_is_asked(headwater):
    """Whoever listens for the owner's clients hears nothing."""
    headwater.state.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(headwater.state / "owner.sock"))
        listener.listen()
        listener.setblocking(False)
        for path in ("rel.toml", str(headwater.place / "none.toml")):
            words = headwater.words("connections", "list", "--connector", "matrix", "--instance", "me")
            words[words.index("--config") + 1] = path
            assert headwater.run(words, "").status == 2
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.clause("CLI-231")
def test_a_disabled_connector_collects_nothing(headwater):
    """Its instances stay listed, and can be looked at."""
    headwater.type("instances", "add", "mail/home", "--set", f"path={headwater.place}")
    write(headwater.place, document("[connectors.mail]\nenabled = false\n"))
    refused = headwater.type("collect", "mail/home")
    assert (refused.status, refused.failure["code"]) == (2, "invalid_configuration")
    assert not (headwater.state / "headwater.db").exists()
    assert len(headwater.type("instances", "list").result["instances"]) == 1
    write(headwater.place, document("[connectors.mail]\nenabled = true\n"))
    assert headwater.type("collect", "mail/home").failure["code"] == "run_failed"  # there is no mail


@pytest.mark.parametrize("words", [["connections", "list"], ["connections", "connect"]])
def test_an_instance_that_pins_a_program_is_not_served(headwater, words):
    """It is told at admission, and nothing is started."""
    write(headwater.place, document(entry("forge"), head='default_adapter = "forge"\n'))
    refused = headwater.type(*words)
    told = [refused.failure[name] for name in ("code", "stage", "next_action")]
    assert (refused.status, told) == (1, ["unsupported", "admission", "none"])


@pytest.mark.clause("CLI-226", "CLI-227", "CLI-235", "CLI-237", "CLI-238")
@pytest.mark.parametrize(
    ("words", "url", "field"),
    [
        (["matrix/me", "--adapter", "old"], "https://b.example", "target"),
        (["matrix/me", "--connector", "matrix", "--instance", "me"], "https://b.example", "target"),
        (["matrix/me", "--instance", "me"], "https://b.example", "target"),
        (["matrix"], "https://b.example", "target"),
        (["a/b/c"], "https://b.example", "target"),
        (["/me"], "https://b.example", "target"),
        (["a.b/c"], "https://b.example", "target"),
        (["--adapter", "old"], "https://b.example", "endpoint"),
        ([], "https://b.example", "endpoint"),
        (["fixture-forge/forge"], "https://b.example", "endpoint"),
        (["matrix/me"], "http://a.example", "endpoint"),
        (["matrix/me"], "https://u:p@a.example", "endpoint"),
        (["matrix/me"], "", "endpoint"),
        (["matrix/me"], f"https://{'a' * 2041}", "endpoint"),
    ],
)
def test_an_endpoint_that_goes_nowhere_is_not_written(headwater, words, url, field):
    """What was typed does not fit: it is named by its field, nothing is written, and the address is not repeated."""
    body = SUPPORT.replace('endpoint = "https://a.example"\n', "") + entry("forge")
    write(headwater.place, document(body, head='default_instance = "matrix/support"\n'))
    before = state_of(headwater.place)
    refused = headwater.type("connections", "connect", *words, "--endpoint", url, "--credential-file", "/nonexistent")
    told = [refused.failure[name] for name in ("code", "stage", "next_action", "field")]
    assert (refused.status, told) == (2, ["invalid_input", "arguments", "none", field])
    assert "://" not in refused.stderr
    assert {name: content for name, content in state_of(headwater.place).items() if "/state/" not in name} == before


@pytest.mark.clause("CLI-108")
def test_check_looks_at_the_programs_that_are_pinned(headwater):
    """One that is not what its digest names is a failed prerequisite, and no failure of the command."""
    write(headwater.place, document(entry("forge")))
    rows = {row["name"]: row for row in headwater.type("setup", "check").result["prerequisites"]}
    assert (rows["configuration"]["state"], rows["configuration"]["next_action"]) == ("failed", "check_configuration")


@pytest.mark.clause("CLI-066", "CLI-173")
def test_who_owns_the_files_may_still_only_what_is_permitted(headwater):
    """A way to sign in that the instance leaves out is refused, before its credential is read."""
    permissions = 'permissions = {profiles = ["token"]}\n'
    write(headwater.place, document(f'[connectors.matrix.instances.me]\nendpoint = "https://a.example"\n{permissions}'))
    headwater.type("setup", "init")
    entry_ = ("--profile", "password", "--credential-file", "/nonexistent")
    refused = headwater.type("connections", "connect", "matrix/me", *entry_)
    told = [refused.failure[name] for name in ("code", "stage", "next_action")]
    assert (refused.status, told) == (1, ["forbidden", "admission", "request_permission"])
