"""The index of a release: each departure from its format is refused, in the order of the checks."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from releases.making import ASSET, FILES, INVALID, TAG, UNKNOWN, UNMET, index_of, packed

from headwater import limits
from headwater.errors import HeadwaterError
from headwater.operate.release_index import FEATURES, SCHEMA, read_release

ZEROS = "0" * 64


def written(**members: Any) -> bytes:
    return json.dumps(index_of(FILES, b"", **members)).encode()


def told(document: bytes, tag: str = TAG) -> tuple[str, str, str, int]:
    with pytest.raises(HeadwaterError) as caught:
        read_release(document, tag)
    error = caught.value
    return error.code, error.stage, error.next_action, error.exit_status


def listed(*paths: str, size: Any = 1, sha256: Any = ZEROS) -> list[dict[str, Any]]:
    return [{"path": path, "size": size, "sha256": sha256} for path in paths]


@pytest.mark.clause("CLI-508")
@pytest.mark.parametrize(
    "schema", ["urn:beyond10x:connectors-definitions-index:2", "", SCHEMA.upper(), f"{SCHEMA}\n", None, 1, [SCHEMA]]
)
def test_another_format_is_unknown_whatever_else_stands_in_it(schema):
    assert told(written(schema=schema)) == UNKNOWN
    assert told(json.dumps({"schema": schema, "shape": "of tomorrow", "tag": 7}).encode()) == UNKNOWN


@pytest.mark.clause("CLI-508")
def test_an_index_without_a_format_is_unknown(person):
    assert told(b"{}") == UNKNOWN
    person.place(b'{"schema":"urn:beyond10x:connectors-definitions-index:2"}')
    assert person.code() == UNKNOWN


@pytest.mark.clause("CLI-509")
@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"null",
        b"\xff",
        b"\xef\xbb\xbf" + written(),
        written()[:-1],
        written() + b"{}",
        written().replace(b'{"schema', b'{"schema":"x","schema', 1),
        written().replace(b'"tag"', b'"tag":"0.2.0","tag"', 1),
        written().replace(b'"size"', b'"size":1,"size"', 1),
        written(commit="\ud800"),
        b'{"schema":' + b"[" * 100_000,
    ],
)
def test_what_is_no_object_with_each_member_once_is_invalid(document):
    assert told(document) == INVALID


@pytest.mark.clause("CLI-509")
@pytest.mark.parametrize("name", ["tag", "commit", "asset", "files", "features"])
def test_no_member_may_be_missing_or_of_another_type(name):
    whole = index_of(FILES, b"")
    assert told(json.dumps({key: value for key, value in whole.items() if key != name}).encode()) == INVALID
    for other in (None, 1, True, {}, "x" if name in ("asset", "files", "features") else ["x"]):
        assert told(written(**{name: other})) == INVALID


@pytest.mark.clause("CLI-509")
@pytest.mark.parametrize(
    "members",
    [
        {"other": 1},
        {"asset": {"name": ASSET, "sha256": ZEROS, "size": 1}},
        {"asset": {"name": ASSET}},
        {"files": [{"path": "a", "size": 1, "sha256": ZEROS, "mode": 1}]},
        {"files": [{"path": "a", "size": 1}]},
        {"files": listed("a", size=1.0)},
        {"files": listed("a", size="1")},
        {"files": listed("a", size=True)},
        {"files": listed("a", size=-1)},
        {"files": listed(1)},
        {"tag": "0.3.1"},
        {"tag": f"{TAG}\n"},
    ],
)
def test_a_member_too_many_or_of_another_kind_is_invalid(members):
    assert told(written(**members)) == INVALID


@pytest.mark.clause("CLI-509", "CLI-511")
@pytest.mark.parametrize("commit", ["", "a" * 39, "a" * 41, "a" * 63, "a" * 65, "A" * 40, "g" * 40, "a" * 40 + "\n"])
def test_a_commit_is_40_or_64_small_hexadecimal_digits(commit):
    assert told(written(commit=commit)) == INVALID


@pytest.mark.clause("CLI-509", "CLI-511")
@pytest.mark.parametrize("digest", ["", "a" * 63, "a" * 65, "a" * 40, "A" * 64, "g" * 64, "a" * 64 + "\n", "٣" * 64])
def test_a_digest_is_64_small_hexadecimal_digits(digest):
    assert told(written(asset={"name": ASSET, "sha256": digest})) == INVALID
    assert told(written(files=listed("a", sha256=digest))) == INVALID


SEGMENTS = ["", ".", "..", "a/b", "/a", "a/", "a\\b", "a\0b", "a" * 256, "ü" * 128]


@pytest.mark.clause("CLI-509")
@pytest.mark.parametrize("name", SEGMENTS)
def test_the_name_of_an_asset_is_one_segment(name):
    assert told(written(asset={"name": name, "sha256": ZEROS})) == INVALID


@pytest.mark.clause("CLI-509", "CLI-510")
@pytest.mark.parametrize(
    "paths",
    [
        *([path] for path in SEGMENTS if path != "a/b"),
        ["a/../b"],
        ["../a"],
        ["a/."],
        ["a//b"],
        ["x/" + "a" * 256 + "/y"],
        ["b", "a"],
        ["a", "a"],
        ["a", "a/b"],
        ["a", "a-b", "a/b/c"],
        ["a/b", "a/b-", "a/b.c", "a/b/c"],
        ["A", "a"],
        ["Acme/x", "acme/X"],
        ["É", "é"],
        ["\U00010000", "\uffff"],
    ],
)
def test_paths_are_relative_plain_sorted_and_apart(paths):
    assert told(written(files=listed(*paths))) == INVALID


@pytest.mark.clause("CLI-510")
@pytest.mark.parametrize(
    "paths",
    [
        ["a", "a-b/c", "ab/d"],
        ["A/x", "a/y"],
        ["a" * 255],
        ["ü" * 127],
        ["...", ".a", "a b", "a:b", "ab"],
        ["\uffff", "\U00010000"],
        [],
    ],
)
def test_other_paths_are_taken(paths):
    assert [file.path for file in read_release(written(files=listed(*paths)), TAG).index.files] == paths


@pytest.mark.clause("CLI-509")
def test_files_are_bounded_in_number_and_in_bytes():
    many = [f"{number:05}" for number in range(limits.RELEASE_FILES + 1)]
    assert len(read_release(written(files=listed(*many[1:], size=0)), TAG).index.files) == 16_384
    assert told(written(files=listed(*many, size=0))) == INVALID
    half = 256 * 1024 * 1024
    assert read_release(written(files=listed("a", "b", size=half)), TAG).index.files[1].size == half
    assert told(written(files=[*listed("a", "b", size=half), *listed("c")])) == INVALID
    assert told(written(files=listed("a", size=10**30))) == INVALID


@pytest.mark.clause("CLI-509", "CLI-511")
@pytest.mark.parametrize(
    "features",
    [
        ["A"],
        [""],
        ["a" * 65],
        ["a-b"],
        ["query_fixed", "query_fixed"],
        ["query_fixed", "embedded_text"],
        ["query_fixed\n"],
        [1],
    ],
)
def test_features_are_sorted_names_each_once(features):
    assert told(written(features=features)) == INVALID


@pytest.mark.clause("CLI-512")
def test_the_first_feature_that_is_not_supported_is_named(person):
    with pytest.raises(HeadwaterError) as caught:
        read_release(written(features=["embedded_text", "graphql_reads", "query_fixed", "zeal"]), TAG)
    assert caught.value.data == {"feature": "graphql_reads"}
    person.publish(features=["a" * 64])
    assert person.code() == UNMET


@pytest.mark.clause("CLI-512")
def test_every_feature_of_the_contract_is_supported():
    features = ["embedded_text", "query_fixed", "query_folds", "rate_limit_headers"]
    assert set(features) == FEATURES
    assert read_release(written(features=features), TAG).index.features == tuple(features)


@pytest.mark.clause("CLI-517")
def test_the_earliest_check_that_fails_is_told(person):
    broken: dict[str, Any] = {
        "schema": "x",
        "tag": "y",
        "features": ["zeal"],
        "asset": {"name": ASSET, "sha256": ZEROS},
    }
    surplus = packed({**FILES, "surplus": b""})
    seen = []
    for repaired in ({}, {"schema": SCHEMA}, {"tag": TAG}, {"features": []}):
        broken |= repaired
        person.publish(archive=surplus, **broken)
        seen.append(person.refusal().code)
    del broken["asset"]
    person.publish(archive=surplus, **broken)
    seen.append(person.refusal().code)
    assert seen == ["unknown_format_version", "release_invalid", "unmet_feature", "digest_mismatch", "release_invalid"]
    assert not person.settings.releases_dir.exists()


letters = st.text("aB/\\.\0\ud800é", max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | letters,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(list(index_of(FILES, b""))), json_values, max_size=3))
@example({})
def test_any_index_is_taken_or_refused(members):
    """Nothing that an index says ends in anything else."""
    try:
        assert read_release(written(**members), TAG).index.tag == TAG
    except HeadwaterError as error:
        assert error.code in ("unknown_format_version", "release_invalid", "unmet_feature")  # noqa: PT017
