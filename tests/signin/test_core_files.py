"""No process that may hold a credential leaves a core file."""

import json
import socket
from pathlib import Path

from signin.test_connecting import SHOP


def test_a_command_that_holds_a_credential_leaves_no_core_file(headwater):
    """While a provider is asked about it."""
    with socket.create_server(("127.0.0.1", 0)) as provider:
        url = f"http://127.0.0.1:{provider.getsockname()[1]}"
        headwater.set_up(url, json.loads((SHOP / "integration.json").read_text()))
        with headwater.typing("connections", "connect", "shop/me", *headwater.entry(token="sentinel")) as process:
            provider.settimeout(60)
            asking, _ = provider.accept()
            with asking:
                lines = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
    (core,) = [line.split() for line in lines if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]
