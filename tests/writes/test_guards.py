"""The guard of a write in a definition: what one may say, and every reason to refuse one, each at its place."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from operate.desk import HEAD
from writes.shop import OPERATIONS, SHIP

from headwater.manifest.definition import examine_definition, read_definition
from headwater.manifest.guard import Check, Look
from headwater.operate.schemas import input_schema
from headwater.operate.writes.guarding import holds

SHOW = '[operations.show]\ndescription = "S."\npath = "/{n}"\nparams.n = { in = "path" }\nparams.q = {}\n'
POST = '[operations.post]\ndescription = "P."\npath = "/p"\nmethod = "POST"\nreviewed_read = true\nbody = {}\n'
WRITE = '[operations.a]\neffect = "write"\nmethod = "PUT"\ndescription = "A."\npath = "/{n}"\n'
WRITE += 'params.n = { in = "path" }\n'
CHECK = 'checks = [{ pointer = "/x", literal = 1 }]'
TWO = f"{{ {CHECK} }}, {{ {CHECK} }}"
LOOK = f'operation = "show", values = {{ n = "/n" }}, {CHECK}'


def faults(text: str) -> list[tuple[str, str]]:
    """Return what is wrong with a write in a definition: where, and by which rule."""
    _, found = examine_definition((HEAD + SHOW + POST + WRITE + text).encode(), toml=True)
    return [(fault.pointer.removeprefix("/operations/a"), fault.rule) for fault in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"guard.preflight = [{{ {LOOK} }}]", []),
        (f'guard.preflight = [{{ {LOOK}, mismatch = "conflict" }}]', []),
        ('guard.postflight = { operation = "show", values = { n = "/n" }, absent = true }', []),
        ("guard.more = 1", [("/guard/more", "unknown_member")]),
        ('guard.inputs.n = "Taken."', [("/guard/inputs/n", "shape")]),
        ('guard.inputs."a b" = "No name."', [("/guard/inputs/a b", "shape")]),
        (f'guard.preflight = [{{ {LOOK}, mismatch = "no" }}]', [("/guard/preflight/0/mismatch", "enum")]),
        (f"guard.preflight = [{{ {LOOK}, absent = true }}]", [("/guard/preflight/0/absent", "unknown_member")]),
        ('guard.preflight = [{ operation = "show", values = { n = "/n" } }]', [("/guard/preflight/0", "checks")]),
        (f'guard.preflight = [{{ operation = "none", {CHECK} }}]', [("/guard/preflight/0/operation", "operation")]),
        (f'guard.preflight = [{{ operation = "a", {CHECK} }}]', [("/guard/preflight/0/operation", "operation")]),
        (f'guard.preflight = [{{ operation = "post", {CHECK} }}]', [("/guard/preflight/0/operation", "operation")]),
        (f'guard.preflight = [{{ operation = "show", {CHECK} }}]', [("/guard/preflight/0/values", "parameter")]),
        (
            f'guard.preflight = [{{ operation = "show", values = {{ n = "/n", x = "/n" }}, {CHECK} }}]',
            [("/guard/preflight/0/values", "parameter")],
        ),
        (
            f'guard.preflight = [{{ operation = "show", values = {{ n = "/m" }}, {CHECK} }}]',
            [("/guard/preflight/0/values/n", "pointer")],
        ),
        (
            f'guard.preflight = [{{ operation = "show", values = {{ n = "n" }}, {CHECK} }}]',
            [("/guard/preflight/0/values/n", "pointer")],
        ),
        *(
            (
                f'guard.preflight = [{{ operation = "show", values = {{ n = "/n" }}, checks = [{{ {check} }}] }}]',
                [(f"/guard/preflight/0/checks/0{place}", rule)],
            )
            for check, place, rule in (
                ('pointer = "x", literal = 1', "/pointer", "pointer"),
                ("literal = 1", "/pointer", "pointer"),
                ('pointer = "/x"', "", "expected"),
                ('pointer = "/x", literal = 1, input = "/n"', "", "expected"),
                ('pointer = "/x", input = "/other"', "/input", "pointer"),
                ('pointer = "/x", literal = []', "/literal", "type"),
                ('pointer = "/x", literal = 1, more = 1', "/more", "unknown_member"),
            )
        ),
        (
            f'guard.postflight = {{ operation = "show", values = {{ n = "/n" }}, any_of = [{{ {CHECK} }}] }}',
            [("/guard/postflight", "checks")],
        ),
        (
            f'guard.postflight = {{ operation = "show", values = {{ n = "/n" }}, any_of = [{TWO}] }}',
            [],
        ),
        (
            f'guard.postflight = {{ operation = "show", values = {{ n = "/n" }}, absent = true, {CHECK} }}',
            [("/guard/postflight", "checks")],
        ),
        (
            'guard.postflight = { operation = "show", values = { n = "/n" } }',
            [("/guard/postflight", "checks")],
        ),
        (f"guard.preflight = [{', '.join([f'{{ {LOOK} }}'] * 5)}]", [("/guard", "count")]),
        ("conflict_status = 412", []),
        *((f"conflict_status = {status}", [("/conflict_status", "status")]) for status in (200, 399, 500, '"412"')),
    ],
)
def test_a_fault_has_its_place(text, found):
    assert faults(f"{text}\n") == found


def test_a_read_has_neither_a_guard_nor_a_conflict():
    text = HEAD + '[operations.r]\ndescription = "R."\npath = "/r"\nconflict_status = 409\nguard = {}\n'
    _, found = examine_definition(text.encode(), toml=True)
    assert [(fault.pointer, fault.rule) for fault in found] == [
        ("/operations/r/conflict_status", "unknown_member"), ("/operations/r/guard", "unknown_member")
    ]  # fmt: skip


def test_what_is_compared_is_taken_and_never_sent(shop):
    operation = read_definition(OPERATIONS.encode(), toml=True).operations["orders.ship"]
    schema = input_schema(operation)
    assert schema["required"] == ["number", "etag", "body"]
    assert "etag" in schema["properties"]
    shop.write("orders.ship", SHIP)
    (sent,) = [asked for asked in shop.running.asked if asked.method == "PATCH"]
    assert (sent.path, sent.body) == ("/orders/7", b'{"state":"sent"}')


@given(
    found=st.sampled_from([1, 1.0, True, "1", None, [], Decimal("1.0"), 0.1]),
    expected=st.sampled_from([1, 1.0, True, "1", None, 0.1]),
)
def test_values_are_compared_as_json_does(found, expected):
    body = {"x": Decimal(str(found)) if type(found) is float else found}
    look = Look("show", {}, ((Check("/x", literal=expected),),))
    kinds = [bool if isinstance(one, bool) else float if isinstance(one, int | float | Decimal) else type(one)
             for one in (found, expected)]  # fmt: skip
    same = kinds[0] is kinds[1] and (float(found) == float(expected) if kinds[0] is float else found == expected)
    assert holds(look, body, {}) is same


def test_one_way_of_several_is_enough_and_each_of_its_checks_counts():
    look = Look("show", {}, ((Check("/a", literal=1), Check("/b", literal=2)), (Check("/c", "/want"),)))
    assert holds(look, {"a": 1, "b": 2}, {})
    assert not holds(look, {"a": 1}, {})
    assert holds(look, {"c": "x"}, {"want": "x"})
    assert not holds(look, {"c": "x"}, {"want": "y"})
    assert not holds(look, [], {"want": "y"})
