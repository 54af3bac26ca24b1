"""Advice about a manifest that is good."""

import json
from typing import Any

import pytest

from headwater.manifest.advice import advise
from headwater.manifest.reading import read


def advice(**fields: Any) -> list[str]:
    """Return the fields of a stream that the advice is about."""
    stream = {"name": "alpha", "semantics": "mutable_state", "schema": {"properties": fields}}
    declaration = read(json.dumps({"connector_id": "c", "streams": [{"name": "zero"} | stream]}).encode())
    assert all(fault.pointer.startswith("/streams/0/schema/properties/") for fault in advise(declaration))
    return [fault.pointer.rpartition("/")[2] for fault in advise(declaration)]


TIME = {"type": "string", "format": "date-time"}


@pytest.mark.clause("CORE-025")
@pytest.mark.parametrize(
    "name",
    ["created_on", "created_at", "createdAt", "modifiedAt", "dateModified", "updated", "last_modified", "EditedAt"],
)
def test_a_source_time_under_another_name_is_reported(name: str) -> None:
    """It is accepted all the same."""
    assert advice(**{name: TIME}) == [name]


@pytest.mark.clause("CORE-025")
@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("source_created_at", TIME),
        ("source_updated_at", TIME),
        ("played_at", TIME),
        ("created_by", TIME),
        ("created_at", {"type": "string"}),
        ("created_at", {"type": "integer"}),
        ("created_at", True),
    ],
)
def test_other_times_and_other_fields_are_not(name: str, schema: Any) -> None:
    """A time of the event itself has its own name, and what is no time is left alone."""
    assert advice(**{name: schema}) == []


@pytest.mark.clause("CORE-025")
def test_a_stream_that_has_the_name_may_have_others_too() -> None:
    """Where `source_created_at` is there, `created_at` is something else."""
    assert advice(created_at=TIME, source_created_at=TIME, modified_at=TIME) == ["modified_at"]
