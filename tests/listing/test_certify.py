"""`connectors certify`: the example passes, and each seeded defect is named by its clause (INT-494)."""

import asyncio
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from listing.conftest import EXAMPLE

from headwater.checking.certifying import certify
from headwater.checking.integration_clauses import ASKED

LEDGER = Path(__file__).parents[2] / "conformance" / "integration.toml"
METHOD = {"key": "token", "label": "Access token", "flow": "token"}
KEEPS = """        import tempfile
        tempfile.NamedTemporaryFile(delete=False).write(b"x")
        return Envelope"""
FIELD = {"name": "token", "label": "Access token", "type": "token", "required": True}


def failing(folder):
    """Return the clauses that fail, but for the advice to confirm what the provider permits."""
    found = asyncio.run(certify(folder, hidden=()))
    assert [one.clause for one in found if one.mark == "fail"] == sorted(
        one.clause for one in found if one.mark == "fail"
    )
    return {one.clause for one in found if one.mark == "fail"} - {"INT-521"}


@pytest.fixture
def defect(tmp_path):
    """Copy the example, with other members of its manifest, other code, or other answers."""

    def make(members=None, code=("", ""), answers=None):
        folder = tmp_path / "acme-tickets"
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        manifest = json.loads((folder / "integration.json").read_text()) | (members or {})
        manifest = {name: value for name, value in manifest.items() if value is not None}
        (folder / "integration.json").write_text(json.dumps(manifest))
        text = (folder / "integration.py").read_text()
        assert code[0] in text
        (folder / "integration.py").write_text(text.replace(*code) if code[0] else text)
        told = json.loads((folder / "fixtures" / "provider.json").read_text())
        told["answers"] |= answers or {}
        (folder / "fixtures" / "provider.json").write_text(json.dumps(told))
        return folder

    return make


def of_field(**members):
    return {"auth": {"methods": [{**METHOD, "fields": [{**FIELD, **members}]}]}}


@pytest.mark.clause("INT-494", "INT-107", "INT-108")
@pytest.mark.parametrize(
    ("clause", "members"),
    [
        ("INT-102", {"version": None}),
        ("INT-102", {"actions": None}),
        ("INT-103", {"key": "Acme_Tickets"}),
        ("INT-103", {"version": "1.0"}),
        ("INT-103", {"colour": "red"}),
        ("INT-103", {"displayName": "Acme\x1b[2J"}),
        ("INT-104", {"provider": {"name": "not a host"}}),
        ("INT-105", {"catalog": {"authType": "oauth", "enabledByDefault": False}}),
        ("INT-105", {"catalog": {"authType": "token", "enabledByDefault": "false"}}),
        ("INT-130", {"capabilities": ["account", "groups", "groups"], "fulfillment": None, "actions": {}}),
        ("INT-130", {"capabilities": ["account", "magic"], "fulfillment": None, "actions": {}}),
        ("INT-131", {"capabilities": ["groups"], "fulfillment": None, "actions": {}}),
        ("INT-132", {"webhooks": {"signature": "hmac_sha256"}}),
        ("INT-132", {"fulfillment": {"retrySafety": "hope"}}),
        ("INT-134", {"capabilities": ["account", "groups"], "fulfillment": None, "actions": {}}),
        ("INT-151", {"capabilities": ["account", "groups"], "fulfillment": None, "actions": {"refresh": True}}),
        ("INT-152", {"actions": {"configure": True}}),
        ("INT-157", {"actions": {"export": True}}),
        ("INT-157", {"actions": {"refresh": "yes"}}),
        ("INT-170", {"auth": {"methods": [{**METHOD, "key": "accessToken", "fields": [FIELD]}]}}),
        ("INT-170", {"auth": {"methods": [{**METHOD, "flow": "magic", "fields": [FIELD]}]}}),
        ("INT-171", of_field(type="number")),
        ("INT-172", of_field(minLength=0)),
        ("INT-173", of_field(pattern="(a+)+")),
        ("INT-332", {"sync": {"resourceConcurrency": 2.5}}),
        ("INT-493", {"hosts": ["https://acme.example/"]}),
    ],
)
def test_a_defect_of_the_manifest_is_named(defect, clause, members):
    """And of it only those clauses that it breaks."""
    assert clause in failing(defect(members))


@pytest.mark.clause("INT-494")
@pytest.mark.parametrize(
    ("clause", "code", "answers"),
    [
        ("INT-134", ("def list_events(self, ctx: Context, cursor", "def list_events(self, ctx: Context, page"), {}),
        ("INT-490", ("class AcmeTickets", "raise OSError\n\n\nclass AcmeTickets"), {}),
        ("INT-490", ("class AcmeTickets", "class class"), {}),
        ("INT-491", ("from typing import Any", "from typing import Any\n\nimport headwater.host"), {}),
        ("INT-177", ("        return Envelope", "        print(fields)\n        return Envelope"), {}),
        ("INT-195", ("        return Envelope", "        open('kept', 'w').write('x')\n        return Envelope"), {}),
        ("INT-195", ("        return Envelope", KEEPS), {}),
        ("INT-195", ("return Envelope(fields", "return (fields"), {}),
        ("INT-195", ('return Envelope(fields["token"])', "raise KeyError"), {}),
        ("INT-195", ("", ""), {"GET /me": {"name": "nobody"}}),
        ("INT-191", ("headers=self._headers(ctx)).accepted()", "headers=self._headers(ctx))"), {}),
        ("INT-334", ("", ""), {"GET /events?cursor=2": {"items": [], "next": "2"}}),
        ("INT-334", ("", ""), {"GET /events?cursor=2": {"items": 5, "next": None}}),
        ("INT-452", ("", ""), {"GET /events?cursor=2": {"items": [{"id": 5}], "next": None}}),
    ],
)
def test_a_defect_of_the_code_is_named(defect, clause, code, answers):
    """By its text, or by what the hooks do with what a service answers."""
    assert clause in failing(defect(code=code, answers=answers))


@pytest.mark.clause("INT-494", "INT-493")
def test_a_request_to_another_host_is_named(defect):
    asked = '        ctx.http.request("GET", "https://spy.example/")\n        told = self._get(ctx, "/me")'
    folder = defect({"hosts": ["api.acme.example"]}, ('        told = self._get(ctx, "/me")', asked))
    assert "INT-493" in failing(folder)


def type_(*words):
    return subprocess.run([sys.executable, "-m", "headwater", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.clause("INT-494")
def test_the_example_is_certified():
    """As a person types it, and as a program reads it."""
    told = type_("connectors", "certify", str(EXAMPLE), "--output", "json")
    assert told.returncode == 0, told.stderr
    rows = json.loads(told.stdout)["result"]["clauses"]
    assert {row["clause"] for row in rows if row["verdict"] != "pass"} == {"INT-521"}
    shown = type_("connectors", "certify", str(EXAMPLE))
    assert "27 clauses passed." in shown.stdout


@pytest.mark.clause("INT-494")
def test_a_failure_says_what_was_seen_and_what_to_do(defect):
    told = type_("connectors", "certify", str(defect({"key": "Acme_Tickets"})))
    assert told.returncode == 1
    assert "INT-103" in told.stderr
    assert "do: Correct integration.json" in told.stderr


@pytest.mark.parametrize("clause", ASKED)
def test_a_row_is_of_the_ledger(clause):
    """Its id is, and its level too."""
    ledger = {row["id"]: row for row in tomllib.loads(LEDGER.read_text())["clause"]}
    assert ASKED[clause].level == ledger[clause]["level"]
    assert ASKED[clause].asks.endswith(".")
    assert ASKED[clause].remedy.endswith(".")
