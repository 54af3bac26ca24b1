"""Bytes for the host: a file named by its digest, and a blob_ref that says what it is."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from headwater.sdk.blobs import Spool
from headwater.sdk.outcome import Misuse
from headwater.sdk.testing import collect

CONTENT = bytes(range(256)) * 5_000


@pytest.mark.clause("CORE-026")
@pytest.mark.parametrize("form", ["bytes", "path", "chunks"])
def test_bytes_become_a_file_and_a_blob_ref(tmp_path: Path, form: str) -> None:
    """The reference has just its four members, and the digest is that of the file that was left."""
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    spool = tmp_path / "spool"
    spool.mkdir()
    given = {"bytes": CONTENT, "path": source, "chunks": (CONTENT[at : at + 999] for at in range(0, len(CONTENT), 999))}
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert Spool(str(spool)).put(given[form], "image/jpeg") == {
        "blob_id": f"blob_sha256_{digest}",
        "mime_type": "image/jpeg",
        "size_bytes": len(CONTENT),
        "sha256": digest,
    }
    assert [file.name for file in spool.iterdir()] == [digest]
    assert (spool / digest).read_bytes() == CONTENT


def test_the_same_bytes_twice_are_one_file(tmp_path: Path) -> None:
    """An empty blob is a blob too."""
    spool = Spool(str(tmp_path))
    assert spool.put(b"", "text/plain") == spool.put(b"", "text/plain")
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [(hashlib.sha256().hexdigest(), 0)]


@pytest.mark.clause("CORE-026")
@pytest.mark.parametrize("mime_type", ["jpeg", "", "image/", "/jpeg", "image/jpeg/x", "image jpeg", "image/j\npeg"])
def test_a_mime_type_that_is_none_is_refused(tmp_path: Path, mime_type: str) -> None:
    """It is refused before a byte is written."""
    with pytest.raises(Misuse):
        Spool(str(tmp_path)).put(b"x", mime_type)
    assert list(tmp_path.iterdir()) == []


def test_a_mime_type_may_have_parameters(tmp_path: Path) -> None:
    """They are kept."""
    spool = Spool(str(tmp_path))
    for mime_type in ("text/plain; charset=utf-8", "application/vnd.oasis.opendocument.text", "image/svg+xml"):
        assert spool.put(b"x", mime_type)["mime_type"] == mime_type


def test_without_a_spool_there_is_no_place_for_blobs() -> None:
    """The connector is told, rather than the bytes lost."""
    with pytest.raises(Misuse):
        Spool(None).put(b"x", "text/plain")


@pytest.mark.clause("CORE-026")
def test_a_record_carries_the_reference_and_never_the_bytes(written: Any) -> None:
    """The wire holds the digest; the content stays in the spool."""
    code = """
@stream("alpha")
def alpha(s):
    yield {"id": "1", "blob_ref": s.run.blob(b"planted-content", "text/plain")}
"""
    (record, _) = collect(written(code), streams=["alpha"]).messages
    assert record["data"]["blob_ref"]["sha256"] == hashlib.sha256(b"planted-content").hexdigest()
    assert set(record["data"]["blob_ref"]) == {"blob_id", "mime_type", "size_bytes", "sha256"}
    assert "planted-content" not in str(record)
