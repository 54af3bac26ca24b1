"""Installing a release of definitions: read, checked whole, and only then kept. It grants nothing (CLI-506)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from headwater import limits
from headwater.errors import refuse
from headwater.joining.configured import configuration_of
from headwater.operate.release_archive import check_asset, unpacked
from headwater.operate.release_index import UNCHANGED, read_release
from headwater.operate.release_names import checked_tag, repository
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.operate.release_index import Release
    from headwater.outbound.release_source import ReleaseSource

Shown = dict[str, Any]
FORMAT: Final = "connectors-definitions-lock/1"


class Releases:
    """The releases of definitions of one Headwater. With `certificates` (PEM), these alone are trusted."""

    def __init__(self, settings: Settings, certificates: str | None = None) -> None:
        self._settings = settings
        self._certificates = certificates

    def install(self, source: str, tag: str) -> Shown:
        """Install the release with a tag from a repository's URL or a folder, and return what was installed.

        Raise what the contract's table has for it; the lock and every entry are as they were then (CLI-523).
        """
        tag, url = checked_tag(tag), repository(source)
        configuration_of(self._settings)
        origin = self._origin(source, url, tag)
        release = read_release(origin.read("index.json", limits.RELEASE_INDEX_BYTES), tag)
        asset = origin.read(release.index.asset.name, limits.RELEASE_ASSET_BYTES)
        check_asset(asset, release.index)
        return self._keep(release, asset, origin.name)

    def _origin(self, source: str, url: str | None, tag: str) -> ReleaseSource:
        from headwater.outbound.release_source import ReleaseFolder, ReleaseRepository

        return ReleaseFolder(source, tag) if url is None else ReleaseRepository(url, tag, self._certificates)

    def _keep(self, release: Release, asset: bytes, source: str) -> Shown:
        """Put the release in its place and name it in the lock: both, or neither."""
        from headwater.configuration.files import replacing
        from headwater.store.releases import ReleaseCache

        index = release.index
        told = {"source": source, "tag": index.tag, "commit": index.commit, "index_sha256": release.digest}
        lock, cache = self._settings.definitions_lock_path, ReleaseCache(self._settings.releases_dir)
        content = msgspec.json.encode({"format": FORMAT, **told}) + b"\n"
        try:
            with replacing(lock, content) as put, cache.holding(release, unpacked(asset, index)) as entry:
                put()
        except OSError as error:
            message = "The release could not be written to the state directory, or its lock beside the configuration."
            raise refuse("unavailable", message, stage="publication", safe=UNCHANGED) from error
        return {
            **told,
            "features": list(index.features),
            "files": len(index.files),
            "lock_path": str(lock),
            "cache_path": str(cache.place(release)),
            "cache_entry": entry,
        }
