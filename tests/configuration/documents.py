"""Configurations for the tests."""

import os
from pathlib import Path

UID = os.geteuid()
DIGEST = "a" * 64


def entry(alias: str = "forge", **members: str) -> str:
    """A legacy entry in TOML; a member given as "" is left out."""
    row = {
        "instance_id": f'"{alias}-local"',
        "adapter_id": '"fixture-forge"',
        "configuration_revision": '"cfg-1"',
        "protocol": '"v1alpha1"',
        "private_protocol": '"connectors-private/2"',
        "executable": f'{{path = "/opt/forge", sha256 = "{DIGEST}", args = []}}',
        **members,
    }
    return f"[adapters.{alias}]\n" + "".join(f"{name} = {value}\n" for name, value in row.items() if value)


def document(body: str = "", format_: int = 5, head: str = "", owner: int = UID) -> str:
    """A configuration in a format."""
    return f'format = "connectors-local/{format_}"\nowner_uid = {owner}\n{head}{body}'


def write(place: Path, text: str | bytes, mode: int = 0o600) -> Path:
    """Write a configuration as its owner does."""
    path = place / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path
