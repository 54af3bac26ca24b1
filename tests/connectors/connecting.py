"""An account that is connected once, by its person's protected file, with a sealed file for what is kept of it."""

import json
import os
from pathlib import Path
from typing import Any


def written(place: Path, name: str, content: str) -> Path:
    """Write a file that only its owner can read."""
    path = place / name
    path.touch(mode=0o600)
    path.write_text(content)
    return path


def configure(place: Path, more: str = "") -> None:
    """Configure a sealed file for credentials, and more tables of `collect.toml`."""
    key = written(place, "key", "k" * 43)
    custody = f'[custody]\nbinding = "sealed_file"\nfile = "{place}/custody.sealed"\nkey_file = "{key}"\n'
    written(place, "collect.toml", f'format = "headwater-collect/1"\n{custody}{more}')
    written(place, "config.toml", f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n')


def connect(headwater: Any, connector: str, endpoint: str, profile: str, fields: dict[str, str]) -> Any:
    """Connect the instance `me` of a connector by a file, which is gone afterwards; return how the connection is."""
    entry = written(headwater.place, "entry.json", json.dumps(fields))
    how = ["--endpoint", endpoint, "--profile", profile, "--credential-file", str(entry)]
    assert headwater.type("connections", "connect", f"{connector}/me", *how).result["instance"] == "me"
    entry.unlink()
    return headwater.type("connections", "describe", "--connector", connector, "--instance", "me").result["connection"]


def revoke(headwater: Any, connector: str) -> None:
    """Revoke the connection; the next run is refused."""
    words = ["--connector", connector, "--instance", "me", "--expected-revision", "1"]
    assert headwater.type("connections", "revoke", *words).result["local_state"] == "revoked"
    assert headwater.type("collect", f"{connector}/me").failure["code"] == "revoked"


def showing(place: Path, *secrets: str) -> list[Path]:
    """Return the files below a folder that show one of these secrets."""
    files = [path for path in place.rglob("*") if path.is_file()]
    return [path for path in files if any(secret.encode() in path.read_bytes() for secret in secrets)]
