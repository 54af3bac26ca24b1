"""What gives authority to read: nothing that a collection run sends or is sent."""

import ast
from pathlib import Path

import pytest
from msgspec.structs import fields

from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.session import Session
from headwater.manifest.declaration import Declaration, Stream
from headwater.wire.encode import encode
from headwater.wire.messages import CollectionScope, CollectionStream

SOURCE = Path(__file__).parents[2] / "src" / "headwater"


@pytest.mark.clause("CP-001")
def test_looking_at_records_needs_nothing_of_the_collection_profile():
    """What answers questions about the store knows no message, no session and no connector."""
    seen, waiting = set(), ["store/sqlite/reading.py"]
    profile = ("headwater.wire", "headwater.collect.session", "headwater.collect.runs", "headwater.process")
    while waiting:
        path = SOURCE / waiting.pop()
        tree = ast.parse(path.read_text())
        guarded = {id(n) for node in tree.body if isinstance(node, ast.If) for n in ast.walk(node)}
        for node in ast.walk(tree):
            if (
                not isinstance(node, ast.ImportFrom)
                or id(node) in guarded
                or not (node.module or "").startswith("headwater")
            ):
                continue
            assert not node.module.startswith(profile), (path, node.module)
            file = f"{node.module.removeprefix('headwater').strip('.').replace('.', '/')}.py"
            if (SOURCE / file).is_file() and file not in seen:
                seen.add(file)
                waiting.append(file)
    assert "store/sqlite/database.py" in seen


@pytest.mark.clause("CP-309")
def test_a_scope_names_what_to_collect_and_nothing_that_could_open_a_door():
    """It has streams with their narrowing: no token, no grant, no address; and START beside it has none either."""
    assert [field.name for field in fields(CollectionScope)] == ["streams"]
    assert [field.name for field in fields(CollectionStream)] == ["name", "resources", "time_range", "fields"]
    declaration = Declaration("https://x.example/c", "1", "C", {"alpha": Stream("alpha", primary_key=("id",))})
    start = Session(RunPlan("run_1", declaration, plan_scope(declaration))).start()
    assert encode(start) == (
        b'{"type":"START","run_id":"run_1","collection_mode":"incremental","scope":{"streams":[{"name":"alpha"}]},'
        b'"state":null,"bindings":{}}\n'
    )
