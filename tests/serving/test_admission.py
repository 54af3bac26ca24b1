"""Who is let in and what is bounded: programs that guess, pages that reach for the server, ids of others."""

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode

import apsw
import pytest
from serving.conftest import PASSWORD

from headwater import limits
from headwater.host import Host
from headwater.server.app import ways
from headwater.server.guard import WEBHOOKS
from headwater.settings import Settings
from headwater.syncing import Syncs

# A page of another site: how its browser marks a request, with the token or without.
FOREIGN = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "http://localhost.evil.example"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"origin": "https://evil.example", "sec_fetch_site": "same-origin"},
]


def routes(tmp_path):
    """Return each route that asks for the token, with something in each of its places."""
    host = Host(Settings(tmp_path / "config.toml", tmp_path))
    named = {"key": "acme-tickets", "method": "password", "id": "x", "connector_id": "x"}
    asked = [(way.method, way.path.replace(":path", "")) for way in ways(host, Syncs(host))]
    return [(method, path.format_map(named)) for method, path in asked if not path.startswith(WEBHOOKS)]


@pytest.mark.clause("INT-425")
def test_no_route_answers_without_the_owners_token(program, acme, tmp_path):
    """Whatever is asked: neither a path nor a body is looked at."""
    for method, path in routes(tmp_path):
        for given in (None, "Bearer x", f"Basic {program.token}", f"Bearer {program.token}x"):
            answer = program.ask(method, path, {"instance": "me", "fields": PASSWORD}, authorization=given)
            assert answer.refused == (401, "authentication_error"), path
            assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert acme.asked == []


@pytest.mark.clause("INT-425")
def test_no_route_answers_a_page_of_another_site(program, acme, tmp_path):
    """Not even one that has the token; a browser cannot leave these headers out."""
    for method, path in routes(tmp_path):
        for headers in FOREIGN:
            answer = program.ask(method, path, {"instance": "me", "fields": PASSWORD}, **headers)
            assert answer.refused == (403, "origin_not_allowed"), (path, headers)
    assert acme.asked == []
    assert program.get("connections?instance=acme_tickets/me").ok()["connections"] == []


def test_a_page_of_the_server_itself_and_a_person_who_types_an_address_are_let_in(program):
    own = f"http://127.0.0.1:{program.port}"
    for headers in ({"origin": own}, {"sec_fetch_site": "same-origin"}, {"sec_fetch_site": "none"}):
        assert program.ask("GET", "/v1/integrations", **headers).ok()


@pytest.mark.clause("INT-425")
def test_the_connection_of_another_user_is_nowhere(program):
    """Each action on it is answered as one on nothing, and changes nothing."""
    connection = program.connected()
    database = apsw.Connection(str(program.person.state / "headwater.db"))
    database.execute("UPDATE connections SET owner = owner + 1")
    before = database.execute("SELECT * FROM connections").fetchall()
    again = {"expected_revision": "1", "fields": PASSWORD}
    asked = [("", None), ("/resources", None), ("/refresh", {}), ("/configure", {"options": {"a": "b"}})]
    asked += [("/disconnect", {}), ("/reconnect/password/start", again)]
    for path, body in asked:
        method = "GET" if body is None else "POST"
        theirs = program.ask(method, f"/v1/connections/{connection}{path}", body)
        nothing = program.ask(method, f"/v1/connections/connection_x{path}", body)
        assert theirs.refused == nothing.refused == (404, "not_found")
        assert theirs.error["message"] == nothing.error["message"]
    assert database.execute("SELECT * FROM connections").fetchall() == before
    database.close()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"instance":"me","fields":{"user":"ada","user":"eve","password":"correct horse"}}',
        b'{"instance":"me","fields":{"user":7}}',
        b'{"instance":"me","fields":{},"owner":"0"}',
        b'{"instance":"me","instance":"you","fields":{}}',
        b'{"instance":"me","fields":{"user":"\xff"}}',
        b'{"instance":"me","fields":{"user":"\\ud800","password":"correct horse"}}',
        b'{"instance":"me","fields":' + b'{"a":' * 500 + b"1" + b"}" * 501,
        b'{"instance":"me/../you","fields":{}}',
        b'{"instance":"me","fields":{"user":"ada","password":"correct horse"},"redirect_uri":"https://evil.example/"}',
        b'{"instance":"me","fields":{"user":"ada","password":"correct horse"},'
        b'"redirect_uri":"http://127.0.0.1:80@evil.example/"}',
    ],
)
def test_a_body_that_does_not_fit_signs_nobody_in(program, acme, body):
    """Nothing of it is repeated, and the provider hears nothing."""
    answer = program.post("integrations/acme-tickets/auth/password/start", body)
    assert answer.status in (400, 422)
    assert "horse" not in json.dumps(answer.body)
    assert acme.asked == []


def test_a_body_over_its_bound_is_refused(program):
    """Of every route that takes one, whether it needs it or not."""
    large = b'{"instance":"' + b"x" * limits.SERVER_BODY_BYTES + b'"}'
    for path in ("integrations/acme-tickets/auth/password/start", "connections/x/refresh", "quotes"):
        try:
            answer = program.post(path, large)
        except (BrokenPipeError, ConnectionResetError):
            continue  # the server spoke and closed while the client was still sending
        assert answer.refused == (413, "body_too_large")
    assert program.get("integrations").ok()


@pytest.mark.clause("INT-427")
@pytest.mark.parametrize("path", ["integrations", "instances", "connections?instance=acme_tickets/me", "syncs"])
def test_a_list_is_held_to_its_maximum_and_says_so(program, path):
    """More is not an error; nothing and nonsense are."""
    join = "&" if "?" in path else "?"
    clamped = program.get(f"{path}{join}limit=10000").ok()
    assert clamped["warnings"] == [{"code": "limit_clamped", "limit": limits.SERVER_PAGE_MAX}]
    assert "warnings" not in program.get(f"{path}{join}limit={limits.SERVER_PAGE_MAX}").ok()
    for limit in ("0", "-1", "x", "1.0", "", "9" * 100, "%D9%A1"):
        assert program.get(f"{path}{join}limit={limit}").refused == (400, "invalid_request")
    assert program.get("syncs?status=unheard").refused == (400, "invalid_input")
    assert program.get(f"{path}{join}limits=1").refused == (400, "invalid_request")


def pages(program, path):
    """Walk a list in pages of one; return the rows."""
    member = path.partition("?")[0].replace("syncs", "items")
    join, found, cursor = "&" if "?" in path else "?", [], ""
    while True:
        page = program.get(f"{path}{join}limit=1{cursor}").ok()
        assert len(page[member]) <= 1
        found += page[member]
        if "next_cursor" not in page:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def several(program):
    """Make two rows of each list; return the paths."""
    first = program.connected()
    for _ in range(2):
        program.refreshed(first)
    program.post(f"connections/{first}/disconnect").ok()
    program.connected()
    program.person.instance("you", program.person.endpoint)
    return ["integrations", "instances", "syncs", "connections?instance=acme_tickets/me"]


@pytest.mark.clause("INT-427")
def test_a_list_is_walked_by_its_cursors_and_by_no_others(program):
    """Every row once. A cursor of another list, of other filters, of another owner or of nobody is refused."""
    paths = several(program)
    for path in paths:
        member = path.partition("?")[0].replace("syncs", "items")
        assert pages(program, path) == program.get(path).ok()[member]
        assert len(pages(program, path)) > 1
    given = program.get("syncs?limit=1").ok()["next_cursor"]
    (name, owner, rest), place = json.loads(urlsafe_b64decode(given))
    assert owner == os.geteuid()
    huge = urlsafe_b64encode(b"[%d]" % 10**30).decode()
    forged = [[[name, owner, rest], other] for other in (None, "x", 7, [1], "WzEsMSwxXQ", huge)]
    forged += [[[name, owner + 1, rest], place], [["/v1/connections", owner, rest], place], [place], 7]
    texts = [urlsafe_b64encode(json.dumps(one).encode()).decode() for one in forged]
    for cursor in (*texts, "x", "", "%00", program.get("integrations?limit=1").ok()["next_cursor"]):
        assert program.get(f"syncs?cursor={cursor}").status == 400
    assert program.get(f"syncs?instance=acme_tickets/me&cursor={given}").refused == (400, "stale_cursor")
    assert program.get(f"integrations?cursor={given}").refused == (400, "stale_cursor")


@pytest.mark.clause("INT-427")
def test_each_answer_has_an_id_that_is_in_the_log_and_nothing_secret_is(program):
    """Answers and refusals alike; what was asked and entered stands in no line of it."""
    answers = [program.sign_in(), program.sign_in(user="ada", password="sentinel-wrong"), program.get("nowhere")]
    answers += [program.get("syncs?instance=sentinel-query"), program.get("connections/sentinel-path")]
    answers += [program.ask("GET", "/v1/syncs", authorization="Bearer sentinel-token"), program.post("integrations")]
    text = program.log.read_text()
    lines = {line.split()[1]: line.split() for line in text.splitlines()}
    for answer in answers:
        line = lines[answer.headers["Request-Id"]]
        assert (int(line[4]), line[5]) == (answer.status, answer.error["code"] if "error" in answer.body else "-")
    assert "sentinel" not in text
    assert "horse" not in text
    assert program.token not in text
    assert program.log.stat().st_mode & 0o077 == 0


def test_a_full_log_begins_anew_and_keeps_one_old_file(program):
    program.log.write_bytes(b"x" * limits.SERVER_LOG_BYTES)
    program.get("integrations")
    program.get("integrations")
    assert program.log.with_name("server.log.1").stat().st_size > limits.SERVER_LOG_BYTES
    assert len(program.log.read_text().splitlines()) == 1
