"""The tree of failure: a closed table, three families, three exits."""

import ast
from pathlib import Path
from typing import get_args

import pytest

import headwater
from headwater.codes import ALWAYS, CODES, CONTRACT, OURS, Kind, NextAction, Stage
from headwater.errors import (
    EXITS,
    HeadwaterError,
    Interruption,
    OperationalError,
    UsageError,
    refuse,
)

FAMILIES = {"usage": UsageError, "operational": OperationalError, "interrupted": Interruption}
STAGES, NEXT_ACTIONS = set(get_args(Stage)), set(get_args(NextAction))


def test_there_are_three_families_and_three_exits() -> None:
    """Every kind has an exit status, and no status has two kinds."""
    assert EXITS == {"usage": 2, "operational": 1, "interrupted": 130}
    assert set(FAMILIES) == set(EXITS)
    assert set(HeadwaterError.__subclasses__()) == set(FAMILIES.values())


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_makes_its_family(code: str) -> None:
    """The error has what its row says, and the exit of its kind."""
    row = CODES[code]
    error = refuse(code)
    assert type(error) is FAMILIES[row.kind]
    assert error.exit_status == EXITS[row.kind]
    assert (error.code, error.kind, error.stage, error.next_action) == (code, row.kind, row.stage, row.next_action)
    assert str(error) == error.message == row.message


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_row_is_written_in_the_house_vocabulary(code: str) -> None:
    """Codes and stages are plain names, next actions a closed set, and the message one sentence."""
    row = CODES[code]
    assert code.islower()
    assert code.isidentifier()
    assert row.stage in STAGES
    assert row.kind in get_args(Kind)
    assert row.next_action in NEXT_ACTIONS
    assert row.message[0].isupper()
    assert row.message.endswith(".")


def test_a_code_outside_the_table_cannot_be_raised() -> None:
    """There is no failure without a row."""
    for make in (refuse, UsageError, OperationalError):
        with pytest.raises(KeyError):
            make("no_such_code")


def test_a_refusal_carries_what_it_was_given() -> None:
    """The words, what is safe, the next command and the data are kept beside the row's own."""
    error = refuse("run_failed", "It broke.", safe="Nothing was lost.", command="headwater runs explain", run_id="r1")
    assert (error.message, error.safe, error.command, error.data) == (
        "It broke.",
        "Nothing was lost.",
        "headwater runs explain",
        {"run_id": "r1"},
    )
    assert refuse("run_failed", "").message == CODES["run_failed"].message


def test_every_code_that_the_house_raises_is_in_the_table() -> None:
    """A literal code at any call of `refuse` or `refusal` has a row."""
    root = Path(headwater.__path__[0])
    raised = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = isinstance(node, ast.Call) and ast.unparse(node.func) in ("refuse", "refusal")
            if named and node.args and isinstance(node.args[0], ast.Constant):
                raised.add(node.args[0].value)
    assert raised
    assert raised <= set(CODES)


DEFAULTS = {
    "invalid_input": ("arguments", "none"),
    "invalid_configuration": ("configuration", "check_configuration"),
    "metadata_unavailable": ("observation", "retry_status"),
    "metadata_schema_newer": ("admission", "upgrade"),
    "revision_conflict": ("publication", "retry_explicitly"),
    "not_found": ("admission", "check_configuration"),
    "forbidden": ("admission", "request_permission"),
    "revoked": ("admission", "create_connection"),
    "incarnation_mismatch": ("stop", "retry_status"),
    "unsupported": ("admission", "none"),
    "interrupted": ("admission", "retry_status"),
}


@pytest.mark.clause("CLI-933", "CLI-900", "CLI-930")
@pytest.mark.parametrize("code", DEFAULTS)
def test_a_row_says_what_the_contract_leaves_to_a_default(code: str) -> None:
    """Where the place that raises says nothing else, these hold."""
    error = refuse(code)
    assert (error.stage, error.next_action) == DEFAULTS[code]


def test_a_place_may_say_another_stage_and_next_action() -> None:
    """The same code comes from either side of a dispatch."""
    error = refuse("forbidden", stage="dispatch", next_action="check_configuration")
    assert (error.stage, error.next_action) == ("dispatch", "check_configuration")


@pytest.mark.clause("CLI-011", "CLI-916", "CLI-931")
@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_tells_no_member_that_its_row_does_not_name(code: str) -> None:
    """What could be a secret cannot be raised; opaque references may always stand there."""
    with pytest.raises(TypeError, match="password"):
        refuse(code, password="s3nt1nel")
    assert refuse(code, **dict.fromkeys(ALWAYS, "c1")).data == dict.fromkeys(ALWAYS, "c1")
    assert refuse(code, **dict.fromkeys(CODES[code].members.split())).code == code


@pytest.mark.clause("CLI-003", "CLI-931")
def test_our_codes_stand_beside_the_contracts_and_name_no_argument() -> None:
    """No code has two meanings, and `field` is on the refusals that the contract names alone."""
    assert CONTRACT.keys() & OURS.keys() == set()
    assert CODES.keys() == CONTRACT.keys() | OURS.keys()
    naming = {code for code, row in CODES.items() if "field" in row.members.split()}
    assert naming == {"invalid_input", "lifecycle_conflict", "unsupported"}
