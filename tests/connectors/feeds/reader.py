"""Running the connector over some feeds."""

from pathlib import Path
from typing import Any

import headwater.connectors
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.sdk.testing import Transcript, collect

CONNECTOR = Path(headwater.connectors.__path__[0]) / "feeds"


def run(*urls: str, state: dict[str, Any] | None = None, **how: Any) -> Transcript:
    """Run over feeds, whatever comes of it, and hold what is emitted to the manifest."""
    options = {"urls": list(urls), "allow_private": True, **how.pop("options", {})}
    transcript = collect(CONNECTOR, options=options, state=state, timeout_seconds=100, **how)
    for name, stream in read((CONNECTOR / "manifest.json").read_bytes()).streams.items():
        for data in transcript.records(name):
            compile_schema(stream.schema or {}).validate(data)
    assert "Traceback" not in transcript.stderr
    return transcript


def succeed(*urls: str, state: dict[str, Any] | None = None, **how: Any) -> Transcript:
    """Run over feeds, which must succeed."""
    transcript = run(*urls, state=state, **how)
    assert transcript.done["status"] == "succeeded", transcript.stderr
    return transcript


def titles(transcript: Transcript) -> list[str]:
    """Return the titles of the entries that were sent."""
    return [record["title"] for record in transcript.records("entries")]


def gaps(transcript: Transcript) -> dict[str, tuple[str, bool]]:
    """Return reason and whether it passes, by feed."""
    said = [m for m in transcript.messages if m["type"] == "DETAIL_GAP"]
    return {m["record_key"]: (m["reason"], m["retryable"]) for m in said}


def outcomes(transcript: Transcript) -> dict[str, int]:
    """Return what became of the feeds."""
    (evidence,) = [m for m in transcript.messages if m["type"] == "STREAM_EVIDENCE"]
    return {name: count for name, count in evidence["outcomes"].items() if count}


def rss(*names: str, title: str = "A feed", more: str = "") -> str:
    """Write a feed of RSS 2.0 with an entry for each name."""
    items = "".join(
        f"<item><title>{name}</title><link>https://example.org/{name}</link><guid>{name}</guid>"
        f"<pubDate>Tue, 01 Oct 2024 10:00:00 GMT</pubDate><description>About {name}</description></item>"
        for name in names
    )
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>{title}</title>{items}{more}</channel></rss>'
