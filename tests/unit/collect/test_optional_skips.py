"""Details that the provider itself calls gone: credited where both sides opted in, and looked at nowhere else."""

import json

import pytest

from headwater.collect.plan import match_bindings
from headwater.manifest.reading import read
from headwater.wire.surroundings import OPTIONAL_SKIPS

OPTED_IN = {OPTIONAL_SKIPS: {}}


@pytest.mark.parametrize(
    ("sets", "bindings", "commits"),
    [
        ("[p1 ¦ ∅ ¦ optional p1]", OPTED_IN, True),
        ("[p1 p2 ¦ p1 ¦ optional p2]", OPTED_IN, True),
        ("[p1 p2 ¦ ∅ ¦ optional p2]", OPTED_IN, False),
        ("[p1 ¦ ∅]", OPTED_IN, False),
        ("[p1 ¦ ∅ ¦ optional p1]", {}, False),
        ("[p1 ¦ ∅ ¦ optional p1]", {"example.com/optional-skip-keys": {}}, False),
    ],
)
def test_a_skip_is_credited_where_both_opted_in(play, sets, bindings, commits):
    """The binding stands in START only if the connector declares it and the host offers it."""
    played = play("SOLO", f"S albums=a1; C photos→albums {sets}", bindings=bindings)
    assert ("albums" in played.committed) is commits


def test_neither_side_alone_opts_in():
    """An offer without a declaration gives no binding, and neither does a declaration without an offer."""
    manifest = {"connector_id": "x", "streams": [{"name": "alpha"}]}
    declaring = {**manifest, "runtime_requirements": {"bindings": {OPTIONAL_SKIPS: {"required": False}}}}
    assert match_bindings(read(json.dumps(manifest).encode()), OPTED_IN) == {}
    assert match_bindings(read(json.dumps(declaring).encode()), {"network": {}}) == {}
    assert match_bindings(read(json.dumps(declaring).encode()), OPTED_IN) == OPTED_IN


@pytest.mark.parametrize("keys", ["p1", [True], [["p1"]], ["p9"], ["p1", "p1"], ["p2"], None])
def test_skips_that_make_no_sense_end_an_opted_in_run_and_no_other(play, keys):
    """No keys, a key that is not required, one twice, one that was fetched."""
    report = {"type": "DETAIL_COVERAGE", "reference_only": True, "stream": "photos", "state_stream": "albums"}
    line = json.dumps({**report, "required_keys": ["p1", "p2"], "hydrated_keys": ["p2"], "optional_skip_keys": keys})
    assert play.refused("SOLO", line, bindings=OPTED_IN) == "coverage_keys"
    assert play("SOLO", f"S albums=a1; {line}").verdict.status == "succeeded"


def test_what_was_credited_is_told(play):
    """`runs explain` says how many keys were neither fetched nor a gap, and count all the same."""
    played = play("SOLO", "S albums=a1; C photos→albums [p1 ¦ ∅ ¦ optional p1]", bindings=OPTED_IN)
    assert played.session.facts.coverage[0]["skipped"] == 1
