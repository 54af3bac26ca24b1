"""A calendar server over TLS, with a certificate of its own authority."""

import os
import subprocess
from pathlib import Path
from typing import Any

from connectors.caldav.calendars import filled
from connectors.connecting import configure, connect
from connectors.dav.account import Account
from servers.dav_relay import relay_to
from signin.certificates import certified


def test_a_server_of_an_own_authority_is_connected_and_collected(
    account: Account, headwater: Any, tmp_path: Path
) -> None:
    """The operator names the authority once, for signing in and for runs; nobody else gets the password."""
    authority, context = certified(tmp_path)
    filled(account)
    with relay_to(account.server.port, context) as relay:
        fields = {"username": account.owner.name, "password": account.owner.password}
        configure(headwater.place, f'[providers."caldav.invalid"]\nca_file = "{authority}"\n')
        assert connect(headwater, "caldav", relay.url, "app_password", fields)["state"] == "ready"
        assert set(relay.kinds) == {"PROPFIND"}
        assert headwater.type("collect", "caldav/me").result["status"] == "succeeded"
    assert len(headwater.keys("events", "caldav/me")) == 3


def test_a_run_believes_what_its_caller_s_environment_names(account: Account, headwater: Any, tmp_path: Path) -> None:
    """The confined program reads the file; without it the server is asked nothing."""
    (tmp_path / "elsewhere").mkdir()
    authority, context = certified(tmp_path / "elsewhere")
    filled(account)
    with relay_to(account.server.port, context) as relay:
        words = headwater.words("collect", "caldav/me", *account.typed(tmp_path), "--set", f"endpoint={relay.url}")
        environment = {"HOME": str(headwater.place), "PATH": os.environ["PATH"]}
        alone = subprocess.run(words, env=environment, capture_output=True, timeout=60)
        assert (alone.returncode, relay.asked) == (1, [])
        assert b"certificate cannot be trusted" in alone.stderr
        environment["SSL_CERT_FILE"] = str(authority)
        done = subprocess.run(words, env=environment, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
