"""What an integration's process says first: read to the letter, or refused with every fault at its place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import limits
from headwater.manifest.hello import examine_hello
from headwater.manifest.hook_source import hook_faults, implemented, operations_of
from headwater.manifest.integration import read_integration

SHOW = {"description": "One.", "input": {"type": "object"}, "output": {}}
WALK = {"param": "page", "counter": {}, "records": "/a", "ends": [{"name": "none", "pointer": "/a", "empty": True}]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def said(operations, **more):
    return json.dumps({"hooks": ["disconnect"], "operations": operations, **more}).encode()


def faults(document):
    return [(fault.pointer, fault.rule) for fault in examine_hello(document)[1]]


def test_a_hello_is_read_whole():
    pages = {"type": "object", "properties": {"page": {"type": "integer"}}}
    more = {"contract": "a/v1", "profiles": ["token"], "scopes": ["read"], "walk": WALK}
    hello, found = examine_hello(said({"a.show": {**SHOW, "input": pages, **more}, "b": {**SHOW, "effect": "write"}}))
    assert (found, hello.hooks) == ([], {"disconnect"})
    one, other = hello.operations.values()
    assert (one.id, one.effect, one.contract, one.profiles, one.scopes) == (
        "a.show",
        "read",
        "a/v1",
        ("token",),
        ("read",),
    )
    assert (one.walk.param, one.input, other.effect, other.walk) == ("page", pages, "write", None)


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (b"", [("", "json")]),
        (b"[]", [("", "type")]),
        (b'{"hooks": [], "hooks": [], "operations": {}}', [("/hooks", "repeated_member")]),
        (b"{}", [("/hooks", "required"), ("/operations", "required")]),
        (said({}, more=1), [("/more", "unknown_member")]),
        (said({}, hooks=[1]), [("/hooks", "type")]),
        (said([]), [("/operations", "type")]),
        (said({"a b": SHOW}), [("/operations/a b", "shape")]),
        (said({str(number): SHOW for number in range(limits.OPERATIONS + 1)}), [("/operations", "count")]),
        (said({"a": {**SHOW, "path": "/a"}}), [("/operations/a/path", "unknown_member")]),
        (said({"a": {**SHOW, "effect": "delete"}}), [("/operations/a/effect", "enum")]),
        (said({"a": {**SHOW, "description": "a\nb"}}), [("/operations/a/description", "text")]),
        (said({"a": {**SHOW, "input": {}}}), [("/operations/a/input/type", "type")]),
        (said({"a": {**SHOW, "output": True}}), [("/operations/a/output", "type")]),
        (said({"a": {**SHOW, "output": {"$ref": "https://x"}}}), [("/operations/a/output/$ref", "reference")]),
        (said({"a": {**SHOW, "walk": WALK}}), [("/operations/a/walk", "parameter")]),
        (b" " * limits.MANIFEST_BYTES + said({}), [("", "size")]),
    ],
)
def test_every_reason_to_refuse_one_has_its_place(document, found):
    assert faults(document) == found


@given(JSON, JSON)
def test_whatever_is_said_it_is_refused_or_read(hooks, value):
    hello, found = examine_hello(json.dumps({"hooks": hooks, "operations": {"a": value}}).encode())
    assert (hello is None) is bool(found)


class TestSource:
    HEAD = "from headwater.sdk import integration\nclass A(integration.Integration):\n"

    def faults(self, methods: str) -> list[str]:
        from adapters.conftest import GUESTS

        shop = read_integration((GUESTS / "shop" / "integration.json").read_bytes())
        return [fault.rule for fault in hook_faults(shop, (self.HEAD + methods).encode())]

    def test_operations_are_known_by_the_text_alone(self):
        source = (
            self.HEAD + ' @integration.operation("a.b", input=X)\n async def show(self, ctx, given): ...\n'
        ).encode()
        assert (operations_of(source), implemented(source)) == ({"a.b"}, frozenset())
        assert operations_of(b"def") == frozenset()
        assert operations_of(b'@operation("a")\ndef show(self, ctx, given): ...\n') == frozenset()

    @pytest.mark.parametrize(
        ("methods", "found"),
        [
            (' @operation("a")\n def a(self, ctx, given): ...\n', []),
            (" @operation(NAME)\n def a(self, ctx, given): ...\n", ["operation"]),
            (" @operation()\n def a(self, ctx, given): ...\n", ["operation"]),
            (' @operation("a")\n def a(self, ctx): ...\n', ["signature"]),
            (
                ' @operation("a")\n def a(self, ctx, given): ...\n @operation("a")\n def b(self, ctx, given): ...\n',
                ["operation"],
            ),
        ],
    )
    def test_what_is_wrong_with_them_is_told(self, methods, found):
        assert self.faults(methods) == found
