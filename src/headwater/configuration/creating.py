"""The configuration that `setup init` writes: whose it is, and nothing configured yet."""

from headwater.configuration.reading import NEWEST


def first(owner: int) -> bytes:
    """Return a new configuration's bytes (CLI-105, CLI-106)."""
    return (
        "# Headwater's instances. Credentials are kept in the keyring of this machine, and none belongs in this file.\n"
        f'format = "{NEWEST}"\n'
        f"owner_uid = {owner}\n\n"
        "[adapters]\n"
    ).encode()
