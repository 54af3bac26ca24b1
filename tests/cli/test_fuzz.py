"""Whatever is typed: one envelope, a status that fits it, and no word of what was typed."""

import json
from collections.abc import Iterator
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.cli.main import root
from headwater.codes import ALWAYS, CODES, INTEGRATED

SENTINEL = "s3nt1nel"
STATUSES = {"usage": 2, "operational": 1, "interrupted": 130}
# These wait, or work for long, once they are understood.
LASTING = {"demo", "serve", "owner", "collect schedule run"}


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that lead to it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*path, *name.split()))


LEAVES = [(path, leaf) for path, leaf in leaves(root) if " ".join(path) not in LASTING]

texts = [
    SENTINEL,
    f"{SENTINEL}/{SENTINEL}",
    f"/tmp/{SENTINEL}",
    f"{SENTINEL}=1",
    f'{{"{SENTINEL}": [1',
    f"https://{SENTINEL}.example/?a={SENTINEL}",
    f"{SENTINEL}\n\x1b[31m{SENTINEL}",
    f"ü{SENTINEL}\U0001f4a5",
    "demo/me",
    "last",
    "",
]
planted = st.sampled_from(texts)
odd = st.sampled_from(
    [*texts, f"--{SENTINEL}", f"-{SENTINEL}", "-1", "9" * 30, "--", "--output", "--config", "nonsuch"]
)


@st.composite
def fitting(draw: st.DrawFn) -> list[str]:
    """Draw a command as its parser wants it: what is refused now is refused by the command itself."""
    path, leaf = draw(st.sampled_from(LEAVES))
    words, arguments = list(path), []
    for parameter in leaf.params:
        if isinstance(parameter, click.Argument):
            arguments += [draw(value_of(parameter))] if parameter.required or draw(st.booleans()) else []
        elif parameter.required or draw(st.integers(0, 3)) == 0:
            words.append(parameter.opts[0])
            words += [] if parameter.is_flag else [draw(value_of(parameter))]
    return [*words, *arguments]


def value_of(parameter: click.Parameter) -> st.SearchStrategy[str]:
    """Draw a value of a parameter's type."""
    if isinstance(parameter.type, click.Choice):
        return st.sampled_from(list(parameter.type.choices))
    return st.just("1") if isinstance(parameter.type, click.types.IntParamType) else planted


@st.composite
def loose(draw: st.DrawFn) -> list[str]:
    """Draw a command with options that stand anywhere, with values of any type and words that fit nowhere."""
    path, leaf = draw(st.sampled_from(LEAVES))
    words = list(path)
    for parameter in draw(st.lists(st.sampled_from(leaf.params), max_size=3)) if leaf.params else ():
        words.append(draw(st.sampled_from(parameter.opts)) if isinstance(parameter, click.Option) else draw(odd))
        words += draw(st.lists(odd, max_size=1))
    return draw(st.permutations(words)) if draw(st.booleans()) else words


command_lines = st.one_of(fitting(), fitting(), loose())


def check(words: list[str], typed: Any) -> None:
    """Hold an answer to the envelope."""
    told = (words, typed)
    assert "Traceback" not in typed.stderr, told
    if typed.status == 0:
        return
    assert typed.stdout == "", told
    assert SENTINEL not in typed.stderr, told
    (line,) = typed.stderr.splitlines()
    envelope = json.loads(line)
    assert envelope.keys() <= {"ok", "error", "deprecations"}, told
    error = envelope["error"]
    assert (envelope["ok"], set(error)) == (False, {"code", "data"}), told
    if error["code"] != "failure":
        assert (error["code"] in ("cli_parse", "cli_input", "cli_source"), error["data"], typed.status) == (
            True,
            {},
            2,
        ), told
        return
    data = error["data"]
    row = CODES[data["code"]]
    assert (data["kind"], typed.status) == (row.kind, STATUSES[row.kind]), told
    rest = data.keys() - {"kind", "code", "stage", "next_action", "message", "safe", "command"}
    assert rest <= ALWAYS | INTEGRATED | set(row.members.split()), told


@pytest.mark.clause("CLI-002", "CLI-003", "CLI-006", "CLI-007", "CLI-011", "CLI-013", "CLI-916", "CLI-932")
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(words=command_lines)
def test_whatever_is_typed_is_answered_in_one_envelope_without_it(typist: Any, words: list[str]) -> None:
    """A program is told what is wrong in the closed vocabulary, and nothing that was typed comes back."""
    check(words, typist.type("--output", "json", *words))


@pytest.mark.clause("CLI-011", "CLI-037")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(words=command_lines)
def test_a_person_is_told_nothing_of_what_was_typed_either(typist: Any, words: list[str]) -> None:
    """In words, a failure leaves stdout empty as well, and repeats nothing."""
    typed = typist.type(*words)
    assert "Traceback" not in typed.stderr, (words, typed)
    if typed.status != 0:
        assert (typed.stdout, SENTINEL in typed.stderr) == ("", False), (words, typed)
        assert typed.stderr.startswith(("headwater: ", "deprecated: ")), (words, typed)
