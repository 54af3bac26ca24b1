"""`connectors validate`: a manifest alone, as an author types it; and a run under a source declaration."""

import json
import re
from pathlib import Path

import pytest
from unit.manifest.documents import COLLECTION, MANIFEST, SOURCE, THREADS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "manifest.md"


def written(headwater, document):
    """Write a document and return its path as text."""
    path = headwater.place / "document.json"
    path.write_text(json.dumps(document))
    return str(path)


@pytest.mark.parametrize(
    ("document", "shape"), [(SOURCE, "source declaration"), (MANIFEST, "connector manifest with a consent surface")]
)
def test_a_valid_document_is_shown_as_it_was_read(headwater, document, shape):
    """Nothing is started, and no state is made."""
    result = headwater.type("connectors", "validate", written(headwater, document)).result
    assert (result["shape"], result["connector_id"]) == (shape, "https://x.example/connectors/chat")
    messages = result["streams"][0]
    assert (messages["searchable"], messages["range_filters"]["at"]) == (["text"], ["gte", "lt"])
    assert (messages["title"], result["presets"][0]["streams"]) == ("Your messages", ["messages", "threads"])
    assert result["advice"] == []
    assert not headwater.state.exists()


def test_every_fault_is_told_with_its_place(headwater):
    """To a program as a list, to a person a line each, with exit status 2."""
    rows = [{**MANIFEST["streams"][0], "semantics": "log", "cursor_field": "ghost"}, MANIFEST["streams"][1]]
    path = written(headwater, {**MANIFEST, "streams": rows})
    answer = headwater.type("connectors", "validate", path)
    assert answer.status == 2
    places = [fault["pointer"] for fault in answer.failure["faults"]]
    assert (answer.failure["code"], places) == ("invalid_manifest", ["/streams/0/semantics", "/streams/0/cursor_field"])
    person = type(headwater)(headwater.place, "human").type("connectors", "validate", path)
    assert "headwater: The document is refused: 2 faults." in person.stderr
    assert "  /streams/0/cursor_field: names a field that the schema does not have" in person.stderr


def test_advice_refuses_nothing(headwater):
    """It stands under what was read."""
    fields = {"id": {"type": "string"}, "createdAt": {"type": "string", "format": "date-time"}}
    stream = {"name": "a", "semantics": "mutable_state", "schema": {"properties": fields}}
    path = written(headwater, {"connector_id": "c", "streams": [stream]})
    (advice,) = headwater.type("connectors", "validate", path).result["advice"]
    assert advice["pointer"] == "/streams/0/schema/properties/createdAt"
    person = type(headwater)(headwater.place, "human").type("connectors", "validate", path)
    assert person.stdout.splitlines()[-1].startswith("Advice: /streams/0/schema/properties/createdAt: ")


def test_a_file_that_cannot_be_read_is_refused(headwater):
    """A folder, or nothing at all."""
    for name in ("nowhere.json", "."):
        answer = headwater.type("connectors", "validate", str(headwater.place / name))
        assert answer.status == 2
        assert "Traceback" not in answer.stderr


def test_the_manifest_of_the_reference_is_valid(headwater):
    """Whoever copies it from the page has one that is read."""
    (example,) = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    result = headwater.type("connectors", "validate", written(headwater, json.loads(example))).result
    assert result["streams"][0]["stream"] == "messages"


def test_a_connector_runs_under_a_source_declaration(headwater):
    """Its id is who the connector is, and the profile's extension says which stream rides on which."""
    rides = {**THREADS, "name": "rides", "primary_key": ["id"], "semantics": "mutable_state"}
    collection = {"streams": [{"name": "rides", "state_stream": "threads", "coverage_strategy": "checkpoint_window"}]}
    named = {"streams": [{**rides, "name": "threads"}, rides], "selection_presets": []}
    path = written(headwater, {**SOURCE, **named, "extensions": {COLLECTION: collection}})
    record = {
        "type": "RECORD",
        "stream": "rides",
        "key": "a",
        "data": {"id": "a"},
        "emitted_at": "2026-11-30T00:00:00Z",
    }
    state = {"type": "STATE", "stream": "threads", "cursor": {"at": 1}}
    done = {"type": "DONE", "status": "succeeded", "records_emitted": 1}
    script = "read start; " + "; ".join(f"echo '{json.dumps(message)}'" for message in (record, state, done))
    answer = headwater.type("collect", "--manifest", path, "--", "sh", "-c", script)
    assert answer.result["checkpoints"]["committed"] == ["threads"]
    assert headwater.keys("rides", "chat/adhoc") == {"a"}
    (instance,) = headwater.type("streams", "list", "chat/adhoc").result["streams"][:1]
    assert instance["instance"] == "chat/adhoc"


def test_a_document_that_is_refused_starts_nothing(headwater):
    """A run gives the same reasons, before there is a process."""
    path = written(headwater, {**SOURCE, "declaration_version": ""})
    touched = headwater.place / "touched"
    answer = headwater.type("collect", "--manifest", path, "--", "sh", "-c", f"touch {touched}")
    assert (answer.status, answer.failure["faults"][0]["pointer"]) == (2, "/declaration_version")
    assert not touched.exists()
