"""A connector folder's `connector.toml`: what is refused, and how an option's text becomes a value."""

from typing import Any

import pytest

from headwater import limits
from headwater.errors import UsageError
from headwater.manifest.package import NEWER_MESSAGES, Package, read_package
from headwater.wire.decode import NotAMessage, decode

GOOD = b"""
format = "headwater-connector/1"
command = ["python", "connector.py"]
description = "An example"
environment = ["TZ"]

[options]
required = ["path"]

[options.properties]
path = { type = "string", format = "path" }
limit = { type = "integer", minimum = 1 }
deep = { type = "boolean" }
names = { type = "array" }
anything = true
"""


def faults(document: bytes) -> list[tuple[str, str]]:
    """Return the place and rule of each fault of a document that is refused."""
    with pytest.raises(UsageError) as refusal:
        read_package(document)
    assert refusal.value.code == "invalid_manifest"
    return [(fault["pointer"], fault["rule"]) for fault in refusal.value.data["faults"]]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"format = ", id="cut"),
        pytest.param(GOOD + b"\x00", id="NUL"),
        pytest.param(GOOD + b"#\xff", id="not UTF-8"),
        pytest.param(GOOD + b"\nx = " + b"[" * 10_000, id="nested without end"),
        pytest.param(GOOD + b"\nn = " + b"9" * 6_000, id="a number without end"),
    ],
)
def test_what_is_not_toml_is_refused(document: bytes) -> None:
    """A document that cannot be read is refused for that, never with a crash."""
    assert ("", "toml") in faults(document)


def test_a_package_has_a_size_bound() -> None:
    """One byte over the bound is refused, rather than read up to the bound."""
    filled = GOOD + b"#" * (limits.DOCUMENT_BYTES - len(GOOD))
    assert read_package(filled).command == ("python", "connector.py")
    assert ("", "size") in faults(filled + b"#")


@pytest.mark.parametrize("text", ["", 'format = "headwater-connector/2"', "format = 1"])
def test_another_format_is_refused(text: str) -> None:
    """A later format is not guessed at."""
    assert ("", "format") in faults(text.encode())


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        (b'command = ["python", "connector.py"]', b"", "/command", "required"),
        (b'command = ["python", "connector.py"]', b"command = []", "/command", "required"),
        (b'command = ["python", "connector.py"]', b'command = "python"', "/command", "type"),
        (b'command = ["python", "connector.py"]', b'command = ["python", ""]', "/command", "type"),
        (b'environment = ["TZ"]', b"environment = [1]", "/environment", "type"),
        (b'description = "An example"', b"description = 3", "/description", "type"),
        (b'description = "An example"', b"shell = true", "/shell", "unknown_member"),
        (b'required = ["path"]', b'required = "path"', "/options/required", "schema"),
        (b'required = ["path"]', b"default = 2026-01-01", "/options", "schema"),
        (b'required = ["path"]', b'"$ref" = "other.json"', "/options/$ref", "reference"),
    ],
)
def test_a_member_that_does_not_fit_is_refused(old: bytes, new: bytes, place: str, rule: str) -> None:
    """Each fault is told by its place and its rule."""
    assert (place, rule) in faults(GOOD.replace(old, new))


def test_options_that_are_no_table_are_refused() -> None:
    """The options are a schema, which is a table."""
    assert faults(b'format = "headwater-connector/1"\ncommand = ["x"]\noptions = 3') == [("/options", "type")]


def test_a_good_package_is_read_whole() -> None:
    """Each member arrives, and only a `path` option counts as a path."""
    package = read_package(GOOD)
    assert (package.command, package.description, package.environment) == (
        ("python", "connector.py"),
        "An example",
        ("TZ",),
    )
    assert package.paths == {"path"}


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, ["required"]),
        ({"path": 3}, ["type"]),
        ({"path": "x", "limit": 0}, ["minimum"]),
        ({"path": "x", "unknown": 1}, ["additionalProperties"]),
        ({"path": "x", "limit": 1, "anything": [None]}, []),
    ],
)
def test_options_are_held_to_their_schema(options: dict[str, Any], rules: list[str]) -> None:
    """A missing, misfitting or unknown option is named by its rule."""
    assert [fault.rule for fault in read_package(GOOD).option_faults(options)] == rules


def test_a_package_without_options_takes_none() -> None:
    """An option that no schema has is a mistake, not a present."""
    assert [fault.rule for fault in Package(("x",)).option_faults({"a": 1})] == ["additionalProperties"]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("limit", "12", 12),
        ("limit", "-3", -3),
        ("limit", "--3", "--3"),
        ("limit", "-", "-"),
        ("limit", "", ""),
        ("limit", "1.0", "1.0"),
        ("limit", "\u00b2", "\u00b2"),
        ("limit", "\u0663", "\u0663"),
        ("limit", "5" * 5_000, "5" * 5_000),
        ("deep", "true", True),
        ("deep", "false", False),
        ("deep", "True", "True"),
        ("names", "a,b", ["a", "b"]),
        ("path", "12", "12"),
        ("anything", "12", "12"),
        ("unknown", "12", "12"),
    ],
)
def test_text_becomes_a_value_only_where_it_fits(name: str, text: str, value: Any) -> None:
    """What does not fit stays text, so that the schema can refuse it by name."""
    typed = read_package(GOOD).typed(name, text)
    assert (typed, type(typed)) == (value, type(value))


@pytest.mark.clause("CP-109")
def test_a_connector_is_taken_only_by_a_host_that_reads_what_it_sends() -> None:
    """The host comes first: what it does not read yet refuses the connector, before anything is started."""
    assert read_package(GOOD.replace(b"[options]", b'messages = ["STREAM_EVIDENCE"]\n[options]', 1)).messages
    later = GOOD.replace(b"[options]", b'messages = ["STREAM_EVIDENCE", "STREAM_PROOF"]\n[options]', 1)
    assert faults(later) == [("/messages/1", "unknown_message")]


@pytest.mark.clause("CP-109")
@pytest.mark.parametrize("name", NEWER_MESSAGES)
def test_a_host_reads_every_message_that_it_says_it_reads(name: str) -> None:
    """What the package may name is what the wire knows; the line is refused for its members and not for its type."""
    with pytest.raises(NotAMessage) as raised:
        decode(f'{{"type":"{name}"}}'.encode())
    assert raised.value.rule == "invalid_message"
