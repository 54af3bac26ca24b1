"""Releases for the tests: files, the archive that holds them, the index that names them, and who installs them."""

import io
import json
import os
import stat
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from gzip import compress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import HeadwaterError
from headwater.joining.configuring import Configuring
from headwater.joining.releases import Releases
from headwater.settings import Settings

TAG, ASSET, TOP = "0.3.0", "definitions.tar.gz", "definitions-0.3.0"
FILES = {"acme/api.toml": b"name = 'acme'\n", "acme/more/reads.toml": b"r" * 1_000, "empty.toml": b""}


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def member(
    path: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **said: Any
) -> tuple[tarfile.TarInfo, bytes]:
    """Return an entry of an archive, below its top folder; what is `said` of it may be untrue."""
    entry = tarfile.TarInfo(f"{TOP}/{path}" if path else TOP)
    entry.type, entry.size = kind, len(content)
    for attribute, value in said.items():
        setattr(entry, attribute, value)
    return entry, content


def tar(members: Iterable[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.PAX_FORMAT, **more: Any) -> bytes:
    """Return an archive of entries, not compressed."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=form, **more) as archive:
        for entry, body in members:
            archive.addfile(entry, io.BytesIO(body))
    return content.getvalue()


def packed(files: Mapping[str, bytes], *further: tuple[tarfile.TarInfo, bytes], **more: Any) -> bytes:
    """Return the asset of a release, with further entries at its end."""
    top = member("", kind=tarfile.DIRTYPE)
    return compress(tar([top, *(member(*file) for file in files.items()), *further], **more), 1)


def index_of(files: Mapping[str, bytes], archive: bytes, /, **members: Any) -> dict[str, Any]:
    """Return the index of a release, with other `members` in the place of the right ones."""
    listed = [{"path": path, "size": len(files[path]), "sha256": digest(files[path])} for path in sorted(files)]
    right = {
        "schema": "urn:beyond10x:connectors-definitions-index:1",
        "tag": TAG,
        "commit": "0123456789" * 4,
        "asset": {"name": ASSET, "sha256": digest(archive)},
        "files": listed,
        "features": [],
    }
    return {**right, **members}


@dataclass
class Person:
    """Somebody with a configuration, who installs releases of a folder."""

    home: Path
    ca_file: Path | None = None
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        (self.home / "own").mkdir(mode=0o700)
        self.settings = Settings(self.home / "own" / "config.toml", self.home / "state")
        Configuring(self.settings).initialize()

    @property
    def source(self) -> Path:
        """The folder that releases are published in."""
        return self.home / "source"

    def publish(
        self, files: Mapping[str, bytes] = FILES, archive: bytes | None = None, *, under: str = TAG, **index: Any
    ) -> str:
        """Publish a release under a tag, with an archive of these files if none is given; return its index's digest."""
        archive = packed(files) if archive is None else archive
        document = json.dumps(index_of(files, archive, **{"tag": under, **index})).encode()
        return self.place(document, archive, under)

    def place(self, document: bytes, asset: bytes = b"", tag: str = TAG) -> str:
        """Write the files of a release as they are given."""
        folder = self.source / tag
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.json").write_bytes(document)
        (folder / ASSET).write_bytes(asset)
        return digest(document)

    def install(self, source: str | None = None, tag: str = TAG) -> dict[str, Any]:
        return Releases(self.settings, None if self.ca_file is None else self.ca_file.read_text()).install(
            str(self.source) if source is None else source, tag
        )

    def refusal(self, source: str | None = None, tag: str = TAG) -> HeadwaterError:
        """Install, expect a refusal, and that it changed nothing."""
        before = self.kept()
        with pytest.raises(HeadwaterError) as caught:
            self.install(source, tag)
        assert self.kept() == before
        assert not source or source not in str(caught.value)
        return caught.value

    def code(self, source: str | None = None, tag: str = TAG) -> tuple[str, str, str, int]:
        """Return what a refusal is told with: code, stage, next action, exit status."""
        error = self.refusal(source, tag)
        return error.code, error.stage, error.next_action, error.exit_status

    def kept(self) -> dict[str, tuple[str, bytes]]:
        """Return the lock, and all that lies where releases are installed: the kind and mode of each, and its bytes."""
        lock = self.settings.definitions_lock_path
        found = [*self.settings.releases_dir.rglob("*"), *([lock] if os.path.lexists(lock) else [])]
        return {os.fspath(path): (stat.filemode(path.lstat().st_mode), _bytes(path)) for path in found}

    def lock(self) -> dict[str, str]:
        return json.loads(self.settings.definitions_lock_path.read_bytes())


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""


NOT_FOUND = ("not_found", "dispatch", "none", 1)
UNAVAILABLE = ("unavailable", "dispatch", "retry_explicitly", 1)
UNWRITTEN = ("unavailable", "publication", "retry_explicitly", 1)
UNKNOWN = ("unknown_format_version", "admission", "upgrade", 1)
UNMET = ("unmet_feature", "admission", "upgrade", 1)
INVALID = ("release_invalid", "admission", "none", 1)
MISMATCH = ("digest_mismatch", "admission", "none", 1)
INPUT = ("invalid_input", "arguments", "none", 2)
