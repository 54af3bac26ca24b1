"""Definitions: what one may say, and every reason to refuse one, each at its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operate.desk import HEAD, OPERATIONS, failure_of

from headwater.catalog.folders import bundled
from headwater.errors import HeadwaterError
from headwater.manifest.definition import examine_definition, read_definition
from headwater.operate.admission import admit_scopes
from headwater.operate.description import Description, allowed_by, from_definition

A = '[operations.a]\ndescription = "A."\n'
ROW = f'{HEAD}{A}path = "/a"\n'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def faults(text: str) -> list[tuple[str, str]]:
    """Return what is wrong with a definition: where, and by which rule."""
    _, found = examine_definition(text.encode(), toml=True)
    return [(fault.pointer.replace("/operations/a/", "/a/"), fault.rule) for fault in found]


def described(text: str) -> Description:
    """Return the description of an instance by a definition."""
    return from_definition("shop", "shop.me", read_definition(text.encode(), toml=True), None)


def test_the_definitions_that_are_brought_along_are_in_order():
    found = [folder.definition for folder in bundled() if (folder.path / "operations.toml").exists()]
    assert len(found) >= 2
    writes = [one for definition in found for one in definition.operations.values() if one.effect == "write"]
    assert all(one.body is not None and one.body["additionalProperties"] is False for one in writes)


@pytest.mark.clause("CLI-1095", "CLI-572")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [("/format", "required"), ("/operations", "required")]),
        ('format = "connectors-definition/2"\n[operations]\n', [("/format", "enum")]),
        (f"{HEAD}other = 1\n[operations]\n", [("/other", "unknown_member")]),
        (f"{HEAD}[operations.'a b']\n", [("/operations/a b", "shape")]),
        (f"{HEAD}operations = []\n", [("/operations", "type")]),
        (f"{HEAD}[operations.a]\n", [("/a/path", "required"), ("/a/description", "required")]),
        (f'{ROW}more = 1\n', [("/a/more", "unknown_member")]),
        *(
            (f"{HEAD}{A}path = {json.dumps(path)}\n", [("/a/path", "shape")])
            for path in ("a", "/a b", "/a?b", "/{a", "/a%2", "/é", "/{a-b}", "//x\n")
        ),
        *(
            (f"{HEAD}{A}path = '{path}'\n", [("/a/path", "shape")])
            for path in ("/..", "/a/../b", "/./a", "/a/%2E%2e", "/a/.%2e/", "/a/.")
        ),
        (f'{HEAD}{A}path = "/{{x}}"\n', [("/a/path", "placeholder")]),
        (f'{ROW}params.x = {{ in = "path" }}\n', [("/a/params/x", "placeholder")]),
        (f'{HEAD}{A}path = "/{{x}}/{{x}}"\nparams.x = {{ in = "path" }}\n', [("/a/path", "placeholder")]),
        (f'{HEAD}{A}path = "/{{x}}"\nparams.x = {{ in = "path", default = "" }}\n', [("/a/params/x", "placeholder")]),
        (f'{ROW}params.body = {{}}\n', [("/a/params/body", "shape")]),
        (f'{ROW}params.x = {{ type = "date" }}\n', [("/a/params/x/type", "enum")]),
        (f'{ROW}params.x = {{ minimum = 1 }}\n', [("/a/params/x/minimum", "type")]),
        (f'{ROW}params.x = {{ type = "integer", values = ["1"] }}\n', [("/a/params/x/values", "type")]),
        (f'{ROW}params.x = {{ type = "integer", default = "1" }}\n', [("/a/params/x/default", "type")]),
        (f'{ROW}params.x = {{ default = "1", required = true }}\n', [("/a/params/x", "default")]),
        (f'{ROW}params.x = {{}}\nparams.y = {{ wire = "x" }}\n', [("/a/params/y", "repeated")]),
        (f'{ROW}params.x = {{}}\nquery.x = "1"\n', [("/a/query/x", "repeated")]),
        (f'{ROW}method = "POST"\n', [("/a/method", "effect")]),
        (f'{ROW}method = "PUT"\n', [("/a/method", "effect")]),
        (f'{ROW}reviewed_read = true\n', [("/a/reviewed_read", "effect")]),
        (f'{ROW}effect = "write"\n', [("/a/method", "effect")]),
        (f'{ROW}effect = "unknown"\n', [("/a/effect", "enum")]),
        (f'{ROW}body = {{}}\n', [("/a/body", "effect")]),
        (f'{ROW}output = {{ type = "thing" }}\n', [("/a/output/type", "schema")]),
        (f'{ROW}contract = "a b"\n', [("/a/contract", "shape")]),
        *(
            (f'{HEAD}[headers]\n{name} = {json.dumps(value)}\n[operations]\n', [(f"/headers/{name}", "header")])
            for name, value in (
                *((name, "x") for name in ("authorization", "Host", "content-type", "X-HTTP-Method-Override")),
                ("x", "a\nb"),
                ("x", ""),
            )
        ),
        ("operations = ]", [("", "toml")]),
        (f"{HEAD}[operations.a]\nwhen = 2026-01-01\nx = nan\n", [("", "toml")]),
    ],
)  # fmt: skip
def test_a_fault_has_its_place(text, found):
    assert faults(text) == found


def test_all_faults_are_told_at_once():
    with pytest.raises(HeadwaterError) as caught:
        read_definition(b"other = 1\n", toml=True)
    assert (caught.value.code, len(caught.value.data["faults"])) == ("invalid_manifest", 3)


def test_json_is_read_as_toml_is():
    whole = {"format": "connectors-definition/1", "operations": {"a": {"description": "A.", "path": "/a"}}}
    found, none = examine_definition(json.dumps(whole).encode(), toml=False)
    assert (list(found.operations), none) == (["a"], [])
    assert found.operations == read_definition(f"{ROW}".encode(), toml=True).operations


def test_a_definition_has_at_most_256_operations():
    rows = "".join(f'[operations.a{number}]\ndescription = "A."\npath = "/a"\n' for number in range(257))
    assert faults(HEAD + rows) == [("/operations", "count")]
    assert faults(HEAD + rows.rpartition("[operations")[0]) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_a_document_holds_it_is_refused_or_read(value):
    document = {"format": "connectors-definition/1", "operations": {"a": value}, "headers": value}
    definition, found = examine_definition(json.dumps(document).encode(), toml=False)
    assert (definition is None) is bool(found)


@pytest.mark.clause("CLI-825")
def test_an_operation_needs_the_scopes_that_it_names_where_those_that_were_granted_are_known():
    operation = described(f'{ROW}scopes = ["read", "list"]\n').operations["a"]
    for granted in (None, ["list", "read"], ["list", "read", "more"]):
        admit_scopes(operation, "token", granted)
    for granted in ([], ["read"], ["more"]):
        with pytest.raises(HeadwaterError) as caught:
            admit_scopes(operation, "token", granted)
        assert failure_of(caught.value) == ("not_granted", "admission", "repair_connection", None)


class TestDescriptions:
    def test_a_revision_moves_with_the_definition_and_the_schema_with_the_instance_too(self):
        one, other = described(OPERATIONS), described(OPERATIONS.replace("What was ordered", "Orders"))
        assert one.revision != other.revision
        assert one.operations["orders.show"].schema != other.operations["orders.show"].schema
        elsewhere = from_definition("shop", "shop.other", read_definition(OPERATIONS.encode(), toml=True), None)
        assert elsewhere.revision == one.revision
        assert elsewhere.operations["orders.show"].schema != one.operations["orders.show"].schema

    @pytest.mark.clause("CLI-272")
    def test_everything_is_permitted_where_nothing_is_said(self):
        one = described(OPERATIONS)
        assert [found.operation.id for found in one.permitted()] == ["orders.cancel", "orders.list", "orders.show"]
        assert allowed_by(one.operations, ()) == frozenset()

    def test_a_number_may_be_given_as_text_and_several_as_an_array(self):
        text = f'{HEAD}{A}path = "/a"\nparams.n = {{ type = "number", repeated = true, maximum = 5 }}\n'
        one = described(text).operations["a"].input_schema["properties"]["n"]
        single = {"type": ["number", "string"], "pattern": "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$", "maximum": 5}
        assert one == {"anyOf": [{"type": "array", "items": single, "minItems": 1, "maxItems": 256}, single]}
