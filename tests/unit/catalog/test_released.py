"""Which file of a release defines a connector."""

import json

import pytest

from headwater import limits
from headwater.catalog.released import definitions_of
from headwater.operate.release_index import File

BODY = {
    "format": "connectors-definition/1",
    "base_url": "https://acme.example",
    "operations": {"me": {"description": "Who it is.", "path": "/me"}},
    "auth": {
        "methods": [
            {
                "key": "token",
                "label": "Token",
                "flow": "token",
                "scheme": "token",
                "fields": [{"name": "token", "label": "Token", "type": "token", "required": True}],
                "identity": {"source": "api", "kind": "user", "path": "/me", "subject": "/id"},
            }
        ]
    },
}


def written(**members: object) -> bytes:
    return json.dumps({**BODY, **members}).encode()


def found(connector: str, files: dict[str, bytes]) -> list[tuple[str, bool]]:
    """Return the files that define a connector, and whether each can be used."""
    listed = [File(path, len(content), "") for path, content in files.items()]
    return [(one.path, one.provider is not None) for one in definitions_of(connector, listed, files.__getitem__)]


@pytest.mark.clause("CLI-528")
@pytest.mark.parametrize(
    ("path", "members", "connector"),
    [
        ("services/acme.json", {}, "acme"),
        ("acme.json", {}, "acme"),
        ("a/b/c/acme.json", {}, "acme"),
        ("services/api.json", {"id": "acme"}, "acme"),
    ],
)
def test_a_definition_is_found_by_its_id_or_by_its_files_name(path, members, connector):
    assert found(connector, {path: written(**members)}) == [(path, True)]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("services/acme.json", written(id="other")),
        ("services/other.json", written()),
        ("services/acme.txt", written()),
        ("services/acme.json", written(format="connectors-definition/9")),
        ("services/acme.json", b'{"openapi": "connectors-definition/1"}'),
        ("services/other.json", b"acme connectors-definition/1 {{{"),
    ],
    ids=["another id", "another name", "another kind", "another format", "no format", "broken and of another name"],
)
def test_what_only_looks_like_its_definition_is_not(path, content):
    assert found("acme", {path: content}) == []


def test_one_that_cannot_be_read_is_found_by_its_name_and_cannot_be_used():
    assert found("acme", {"a/acme.toml": b'format = "connectors-definition/1"\n[['}) == [("a/acme.toml", False)]
    assert found("acme", {"a/acme.json": written(bogus=1)}) == [("a/acme.json", False)]


def test_every_one_is_found_where_there_are_several():
    assert len(found("acme", {"a/acme.json": written(), "b/api.json": written(id="acme")})) == 2


def test_what_is_too_large_for_a_definition_is_not_read():
    files = [File("a/acme.json", limits.MANIFEST_BYTES + 1, "")]
    assert definitions_of("acme", files, {}.__getitem__) == []


def test_what_it_shares_stands_below_the_folder_above_its_own():
    auth = {"methods": [{"use": "auth/token.json"}]}
    shared = json.dumps(BODY["auth"]["methods"][0]).encode()
    for top in ("", "v2/"):
        files = {f"{top}services/acme.json": written(auth=auth), f"{top}auth/token.json": shared}
        assert found("acme", files) == [(f"{top}services/acme.json", True)]
    files = {"v2/services/acme.json": written(auth=auth), "auth/token.json": shared}
    assert found("acme", files) == [("v2/services/acme.json", False)]
