"""A detail counts as gone on the provider's own word about that very record, and on nothing less."""

from typing import Any

import pytest

from headwater.sdk.testing import collect
from headwater.sdk.tombstones import proves_absence

ABSENT = """
@stream("inbox")
def inbox(s):
    with s.details("bodies") as lane:
        lane.require("b1")
        s.emit({"id": str(lane.absent("b1", s.run.options["said"]))})
    s.save({"n": 1})
@stream("archive")
def archive(s):
    with s.details("bodies"):
        pass
"""
TOMBSTONE = {"id": "b1", "deleted_at": "2026-04-01T10:00:00Z"}
OPTED_IN = {"bindings": {"headwater.dev/optional-skip-keys": {"required": False}}}

# The five causes that prove nothing, as a connector would have them at hand.
CAUSES = {
    "a bare status": {"status": 404},
    "an answer's age": {"id": "b1", "age_days": 4_000, "last_seen_at": "2015-01-01"},
    "a failed transport": {"id": "b1", "error": "connection reset by peer"},
    "tries used up": {"id": "b1", "attempts": 5, "gave_up": True},
    "a general refusal": {"id": "b1", "status": 403, "error": "forbidden"},
}


@pytest.mark.clause("CP-558")
@pytest.mark.parametrize(
    "said",
    [
        TOMBSTONE,
        {"id": "b1", "deleted": True},
        {"name": {"id": "b1"}, "isDeleted": True},
        {"id": "b1", "removedOn": "x"},
    ],
)
def test_the_providers_own_word_is_proof(said: dict[str, Any]) -> None:
    """It names the record, and calls it removed."""
    assert proves_absence("b1", said)


@pytest.mark.clause("CP-558", "CP-559")
@pytest.mark.parametrize(
    "said",
    [*CAUSES.values(), None, {}, {"id": "b2", "deleted": True}, {"id": "b1", "deleted": False}, {"deleted": True}],
)
def test_anything_less_is_none(said: dict[str, Any] | None) -> None:
    """Neither the five causes, nor a tombstone of another record, nor one that says it is still there."""
    assert not proves_absence("b1", said)


def test_every_part_of_a_compound_key_is_named() -> None:
    """Half of a key is another record's as well."""
    said = {"user": "u1", "day": "2026-04-01", "deleted": True}
    assert proves_absence(["u1", "2026-04-01"], said)
    assert not proves_absence(["u1", "2026-04-02"], said)


@pytest.mark.clause("CP-555", "CP-558")
@pytest.mark.parametrize(
    ("said", "requirements", "credited"),
    [(TOMBSTONE, OPTED_IN, True), (CAUSES["a bare status"], OPTED_IN, False), (TOMBSTONE, {"bindings": {}}, False)],
)
def test_a_key_is_sent_as_skipped_only_with_opt_in_and_proof(
    written: Any, said: dict[str, Any], requirements: dict[str, Any], credited: bool
) -> None:
    """Otherwise it is in no outcome, and the member is not even there."""
    folder = written(ABSENT, "MIX", runtime_requirements=requirements)
    transcript = collect(folder, options={"said": said}, streams=["inbox", "bodies", "archive"])
    report = next(message for message in transcript.messages if message["type"] == "DETAIL_COVERAGE")
    assert transcript.records("inbox") == [{"id": str(credited)}]
    assert report.get("optional_skip_keys") == (["b1"] if credited else None)
    assert (report["required_keys"], report["hydrated_keys"]) == (["b1"], [])


@pytest.mark.parametrize("call", ["lane.emit({'id': 'b1'})", "lane.gap('b1', 'later')"])
def test_what_is_gone_has_no_other_outcome(written: Any, call: str) -> None:
    """A key that was fetched or is a gap is not gone."""
    code = ABSENT.replace("s.emit(", f"{call}; s.emit(")
    folder = written(code, "MIX", runtime_requirements=OPTED_IN)
    transcript = collect(folder, options={"said": TOMBSTONE}, streams=["inbox", "bodies"])
    assert "it cannot also be absent" in transcript.stderr
