"""The commands as they are typed: what they answer, in which order they refuse, and that no secret goes anywhere."""

import json
import sqlite3
import stat

import pytest
from connect.conftest import SHOP

SENTINEL = "token-of-anna"


@pytest.fixture
def connected(headwater, shop):
    """A Headwater whose instance is connected. What its shop was asked for that is not counted."""
    assert headwater.connect().status == 0
    shop.asked.clear()
    return headwater


def refusal(answer, code, next_action, stage, exit_status=1, **data):
    """Check that a command refused exactly so."""
    told = answer.failure
    assert (told["code"], told["next_action"], told["stage"]) == (code, next_action, stage)
    assert answer.status == exit_status
    assert data.items() <= told.items()
    return told


@pytest.mark.clause("CLI-300", "CLI-313", "CLI-345", "CLI-225", "CLI-210", "CLI-211")
def test_connect_and_describe(headwater, shop):
    made = headwater.connect().result
    assert made.keys() == {"adapter", "connector", "instance", "connection", "acquisition"}
    pair = ("--connector", "shop", "--instance", "me")
    shown = headwater.connection(*pair)
    assert shown["connection"] == made["connection"]
    assert shown | {"observed_at_ms": 0} == headwater.connection() | {"observed_at_ms": 0}
    assert (shown["source"], shown["stale"], shown["profile"]) == ("authority", False, "api_token")
    asked = shop.asked["/whoami"]
    acquisition = ("--acquisition", made["acquisition"])
    observed = headwater.type("connections", "status", *pair, *acquisition).result["acquisition"]
    assert (observed["state"], observed["connection"]) == ("completed", made["connection"])
    assert shop.asked["/whoami"] == asked


@pytest.mark.clause("CLI-301", "CLI-347", "CLI-906")
def test_an_occupied_instance_answers_before_a_source_is_missed(connected, shop):
    answer = connected.type("connections", "connect", "shop/me")
    told = refusal(answer, "lifecycle_conflict", "repair_connection", "admission")
    assert "reconnect shop/me --expected-revision 1" in told["command"]
    assert not shop.asked


@pytest.mark.clause("CLI-351", "CLI-352", "CLI-347")
def test_a_source_is_missed(headwater):
    answer = headwater.type("connections", "connect", "shop/me")
    told = refusal(answer, "protected_entry_unavailable", "select_protected_source", "protected_entry", 2)
    assert all(way in told["message"] for way in ("--credential-prompt", "--credential-file", "--credential-stdin"))


@pytest.mark.clause("CLI-386", "CLI-361", "CLI-900")
@pytest.mark.parametrize("fields", [{"token": "x", "more": "y"}, {}, {"Token": "x"}])
def test_a_document_that_does_not_fit(headwater, shop, fields):
    answer = headwater.type("connections", "connect", "shop/me", *headwater.entry(**fields))
    told = refusal(answer, "invalid_input", "select_protected_source", "protected_entry", 2)
    assert "field" not in told
    assert not shop.asked


@pytest.mark.clause("CLI-910", "CLI-922", "CLI-310")
def test_a_token_that_is_wrong(headwater):
    told = refusal(headwater.connect("nobody's"), "service_failure", "retry_explicitly", "dispatch")
    assert told["service_code"] == "unauthorized"
    shown = headwater.type("connections", "status", "--acquisition", told["acquisition"]).result["acquisition"]
    assert (shown["state"], shown["reason"], shown["next_action"]) == ("failed", "rejected", "create_connection")
    assert headwater.connect().status == 0


@pytest.mark.clause("CLI-923", "CLI-924", "CLI-915", "CLI-913", "CLI-916")
@pytest.mark.parametrize(
    ("status", "code", "stage", "service_code"),
    [
        (403, "forbidden", "admission", None),
        (404, "service_failure", "dispatch", "upstream_protocol"),
        (429, "service_failure", "dispatch", "rate_limited"),
        (503, "unavailable", "admission", None),
    ],
)
def test_what_a_probe_is_answered(headwater, shop, status, code, stage, service_code):
    shop.status = status
    answer = headwater.connect()
    told = answer.failure
    assert (told["code"], told["stage"], told.get("service_code")) == (code, stage, service_code)
    assert "said by the provider" not in answer.stderr


@pytest.mark.clause("CLI-314", "CLI-909")
@pytest.mark.parametrize(
    "words", [("describe",), ("revalidate", "--expected-revision", "1"), ("revoke", "--expected-revision", "1")]
)
def test_nothing_is_connected(headwater, words):
    refusal(headwater.type("connections", *words), "not_found", "create_connection", "admission")


@pytest.mark.clause("CLI-316", "CLI-317", "CLI-331", "CLI-228")
def test_words_that_are_missing_or_too_many(connected):
    reference = connected.connection()["connection"]
    both = ("--connection", reference, "--acquisition", "acquisition_x")
    for words in ((), both):
        refusal(connected.type("connections", "status", *words), "invalid_input", "none", "arguments", 2)
    for words in (
        ("revoke",),
        ("revoke", "--expected-revision", "1", "--provider"),
        ("describe", "--endpoint", "https://x"),
    ):
        answer = connected.type("connections", *words)
        assert (answer.status, json.loads(answer.stderr)["error"]["code"]) == (2, "cli_parse")


@pytest.mark.clause("CLI-336", "CLI-337", "CLI-346", "CLI-338")
@pytest.mark.parametrize("command", ["reconnect", "revalidate", "revoke"])
def test_revisions_that_are_not_meant(connected, shop, command):
    read_with = {"field": "expected_revision", "revision_expected": "connection", "read_with": "connections describe"}
    stale = connected.type("connections", command, "--expected-revision", "7")
    told = refusal(stale, "lifecycle_conflict", "retry_status", "admission", **read_with)
    assert "revision_given" not in told
    given = connected.type("instances", "describe", "shop/me").result["configuration"]["configuration_revision"]
    mistaken = connected.type("connections", command, "--expected-revision", given)
    refusal(mistaken, "invalid_input", "none", "arguments", 2, **read_with, revision_given="configuration")
    assert (connected.connection()["state"], shop.asked["/whoami"]) == ("ready", 0)


@pytest.mark.clause("CLI-218", "CLI-219", "CLI-220", "CLI-221")
def test_repair_is_the_old_name_of_reconnect(connected):
    words = ("connections", "repair", "--adapter", "shop.me", "--expected-revision", "1")
    answer = connected.type(*words, *connected.entry(token="second-of-anna"))
    assert answer.status == 0, answer.stderr
    old, adapter = json.loads(answer.stdout)["deprecations"]
    assert old == {"command": "connections repair", "replacement": ["connections reconnect"]}
    assert adapter["option"] == "--adapter"


@pytest.mark.clause("CLI-318", "CLI-311", "CLI-320")
def test_reconnect(connected, shop):
    before = connected.connection()
    other = connected.type(
        "connections", "reconnect", "--expected-revision", "1", *connected.entry(token="token-of-bert")
    )
    refusal(other, "identity_mismatch", "revoke_connection", "admission")
    assert connected.type("collect", "shop/me").status == 0
    assert (
        connected.type(
            "connections", "reconnect", "--expected-revision", "1", *connected.entry(token="second-of-anna")
        ).status
        == 0
    )
    del shop.accounts["token-of-anna"]
    assert connected.type("collect", "shop/me").status == 0
    after = connected.connection()
    assert [after[name] for name in ("connection", "revision", "external_identity")] == [
        before[name] for name in ("connection", "revision", "external_identity")
    ]


@pytest.mark.clause("CLI-330", "CLI-332", "CLI-335", "CLI-348", "CLI-334", "CLI-911")
def test_revoke(connected, shop):
    """Custody is not needed for it, no process is left, and it is told again when it is repeated."""
    reference = connected.connection()["connection"]
    (connected.place / "custody.sealed").unlink()
    words = ("connections", "revoke", "--connection", reference, "--expected-revision", "1")
    gone = connected.type(*words).result
    assert (gone["revision"], gone["local_state"], gone["provider_outcome"]) == (2, "revoked", "not_requested")
    assert connected.type(*words).result == gone
    assert connected.connection("--connection", reference)["state"] == "revoked"
    refusal(connected.type("connections", "reconnect", *words[2:]), "revoked", "create_connection", "admission")
    refusal(connected.type("collect", "shop/me"), "revoked", "create_connection", "admission")
    assert not shop.asked
    assert not list((connected.state).glob("*.sock"))


@pytest.mark.clause("CLI-324", "CLI-328", "CLI-329")
def test_pages_of_connections(connected):
    """Four accounts came and went; two of them are a page."""
    with sqlite3.connect(connected.state / "headwater.db") as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(connections)")]
        rest = ", ".join(columns[1:]).replace("lifecycle", "'revoked'")
        for number in range(3):
            database.execute(
                f"INSERT INTO connections SELECT 'a{number}', {rest} FROM connections WHERE reference > 'b'"
            )
    database.close()
    first = connected.type("connections", "list", "--limit", "2").result
    assert [row["connection"] for row in first["connections"]] == ["a0", "a1"]
    assert first.keys() >= {"source", "stale", "observed_at_ms", "next_cursor"}
    second = connected.type("connections", "list", "--limit", "2", "--cursor", first["next_cursor"]).result
    assert [row["state"] for row in second["connections"]] == ["revoked", "ready"]
    assert "next_cursor" not in second
    stale = connected.type("connections", "list", "--limit", "3", "--cursor", first["next_cursor"])
    refusal(stale, "stale_cursor", "retry_explicitly", "observation")
    for limit in ("0", "501"):
        answer = connected.type("connections", "list", "--limit", limit)
        assert json.loads(answer.stderr)["error"]["code"] == "cli_input"


@pytest.mark.clause("CLI-229", "CLI-230", "CLI-239", "CLI-247")
def test_an_endpoint_is_written_before_a_source_is_missed(headwater, shop):
    headwater.configure("")
    path = headwater.place / "config.toml"
    path.write_text(path.read_text().replace('default_instance = "shop/me"\n', ""))
    refusal(
        headwater.type("connections", "connect", "shop/me"), "invalid_input", "none", "arguments", 2, field="endpoint"
    )
    words = ("connections", "connect", "shop/me", "--endpoint", shop.url)
    refusal(headwater.type(*words), "protected_entry_unavailable", "select_protected_source", "protected_entry", 2)
    assert shop.url in path.read_text()
    assert headwater.type(*words, *headwater.entry(token=SENTINEL)).status == 0
    assert headwater.type("collect", "shop/me").status == 0


@pytest.mark.clause("CLI-233", "CLI-234")
def test_another_endpoint_is_another_instance(connected):
    words = ("connections", "connect", "shop/me", "--endpoint", "https://other.example")
    refusal(connected.type(*words), "lifecycle_conflict", "check_configuration", "configuration", field="endpoint")
    assert connected.type("connections", "revoke", "--expected-revision", "1").status == 0
    connected.configure("[connectors.shop.instances.me]\n")
    refusal(connected.type(*words), "lifecycle_conflict", "check_configuration", "configuration", field="endpoint")
    assert "other.example" not in (connected.place / "config.toml").read_text()


def test_a_run_goes_nowhere_else(connected):
    """A credential goes where the configuration says, whatever options are set beside it."""
    answer = connected.type("collect", "shop/me", "--set", "endpoint=http://127.0.0.1:9")
    assert answer.failure["code"] == "invalid_options"


@pytest.mark.clause("CLI-384", "CLI-383")
def test_custody_that_cannot_be_reached(connected):
    """A run is refused before anything is started; who looks is told, and all is well once it can be reached."""
    key = connected.place / "key"
    key.chmod(0o644)
    told = connected.type("collect", "shop/me").failure
    assert (told["code"], told["stage"]) == ("custody_unavailable", "custody")
    assert connected.connection()["state"] == "custody_unavailable"
    key.chmod(0o600)
    assert connected.type("collect", "shop/me").status == 0


@pytest.mark.clause("CLI-384")
def test_a_credential_that_is_gone(connected):
    """No other one takes its place: it has to be entered again."""
    (connected.place / "custody.sealed").unlink()
    told = refusal(connected.type("collect", "shop/me"), "custody_unavailable", "repair_connection", "custody")
    assert "connections reconnect shop/me" in told["command"]
    assert connected.connection()["state"] == "reauthorization_required"
    reconnect = ("connections", "reconnect", "--expected-revision", "1", *connected.entry(token=SENTINEL))
    assert connected.type(*reconnect).status == 0
    assert connected.type("collect", "shop/me").status == 0


@pytest.mark.clause("CLI-460", "CLI-456")
def test_a_run_that_the_provider_refuses_cuts_the_connection_off(connected, shop):
    """The connector says that it needs another credential: the next run is refused before it starts."""
    del shop.accounts[SENTINEL]
    assert connected.type("collect", "shop/me").failure["code"] == "run_failed"
    assert connected.connection()["state"] == "reauthorization_required"
    told = refusal(connected.type("collect", "shop/me"), "not_granted", "repair_connection", "admission")
    assert "connections reconnect shop/me --expected-revision 1 " in told["command"]


def test_a_run_of_another_question_asks_a_person(headwater):
    """Without a connection the answers of a person count, as ever."""
    answers = headwater.write(
        "answers.json", json.dumps({"answers": [{"kind": "credentials", "data": {"token": SENTINEL}}]})
    )
    assert headwater.type("collect", "shop/me", "--answer-file", str(answers)).status == 0


@pytest.mark.clause("CLI-365", "CLI-246", "CLI-916")
def test_no_secret_is_anywhere_but_in_custody(connected, shop):
    """In every byte of the state, the configuration and all that was printed: a credential in none."""
    printed = [connected.type("collect", "shop/me"), connected.connect(), connected.type("connections", "list")]
    shop.status = 401
    printed.append(connected.type("connections", "revalidate", "--expected-revision", "1"))
    (connected.place / "entry.json").unlink()
    for path in connected.place.rglob("*"):
        if path.is_file():
            assert SENTINEL.encode() not in path.read_bytes(), path.name
    for answer in printed:
        assert SENTINEL not in answer.stdout + answer.stderr
    versions = sqlite3.connect(connected.state / "headwater.db").execute("SELECT version FROM connections").fetchall()
    assert all(version not in answer.stdout + answer.stderr for answer in printed for (version,) in versions)
    assert stat.S_IMODE((connected.state / "headwater.db").stat().st_mode) == 0o600


def test_a_person_reads_it(connected):
    """Tables and sentences, with the next command."""
    from dataclasses import replace

    person = replace(connected, mode="human")
    shown = person.type("connections", "describe", "shop/me")
    assert "state: ready" in shown.stdout
    assert "account: anna (user)" in shown.stdout
    again = person.type("connections", "connect", "shop/me")
    assert "Next:" in again.stderr
    assert "connections reconnect shop/me --expected-revision 1" in again.stderr


@pytest.mark.clause("CLI-353")
def test_a_credential_comes_in_by_its_own_ways_only(headwater, monkeypatch):
    """Not as an argument, which is not repeated, and not from the environment."""
    for name in ("TOKEN", "HEADWATER_TOKEN", "API_TOKEN"):
        monkeypatch.setenv(name, SENTINEL)
    for words in (("--token", SENTINEL), ("--credential", SENTINEL), ("--credential-prompt=" + SENTINEL,)):
        answer = headwater.type("connections", "connect", "shop/me", *words)
        assert (answer.status, json.loads(answer.stderr)["error"]["code"]) == (2, "cli_parse")
        assert SENTINEL not in answer.stderr
    refusal(
        headwater.type("connections", "connect", "shop/me"),
        "protected_entry_unavailable",
        "select_protected_source",
        "protected_entry",
        2,
    )


@pytest.mark.clause("CLI-306", "CLI-370")
def test_a_mounted_credential_is_not_entered(headwater, shop):
    """A source is refused, and an occupied instance is told as anywhere."""
    (headwater.place / "mounted" / "shop.me").mkdir(parents=True)
    (headwater.place / "mounted" / "shop.me" / "api_token").write_text(json.dumps({"token": SENTINEL}))
    headwater.write("collect.toml", f'format = "headwater-collect/1"\n[instances."shop/me"]\nfolder = "{SHOP}"\n')
    mounted = f'[custody]\nbinding = "mounted_secret"\ndirectory = "{headwater.place}/mounted"\n'
    headwater.configure(f'[connectors.shop.instances.me]\nendpoint = "{shop.url}"\n{mounted}')
    refusal(headwater.connect(), "invalid_input", "none", "arguments", 2)
    assert not shop.asked
    assert headwater.type("connections", "connect", "shop/me").status == 0
    refusal(headwater.type("connections", "connect", "shop/me"), "lifecycle_conflict", "repair_connection", "admission")
    answer = headwater.type("connections", "reconnect", "--expected-revision", "1", *headwater.entry(token=SENTINEL))
    refusal(answer, "invalid_input", "none", "arguments", 2)


@pytest.mark.clause("CLI-379")
def test_a_connector_without_an_account_is_not_connected(headwater):
    headwater.configure("[connectors.git.instances.here]\n")
    config = headwater.place / "config.toml"
    config.write_text(config.read_text().replace('default_instance = "shop/me"\n', ""))
    answer = headwater.type("connections", "connect", "git/here", *headwater.entry(token=SENTINEL))
    refusal(answer, "unsupported", "none", "admission")
