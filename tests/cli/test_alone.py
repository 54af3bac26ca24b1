"""No command asks anybody who the owner is: not a service on the network, and not a login that another program saved.

Each command runs with a hook of the interpreter that notes every name it looks up, every address it connects to, and
every file it opens below the home of its owner.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTING = """
import os, sys
kept = os.open(os.environ["NOTED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
def note(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "open"):
        told = repr(arguments[1] if event == "socket.connect" else arguments[0])
        os.write(kept, f"{event} {told}\\n".encode(errors="replace"))
sys.addaudithook(note)
"""
SAVED = (
    *(".netrc", ".config/headwater/login.json", ".config/headwater/credentials.json", ".headwater/token"),
    *(".config/connectors/login.json", ".local/state/headwater/login.json", ".config/gh/hosts.yml"),
)
ADDRESSES = ("http://127.0.0.1:9", "https://identity.invalid")
COMMANDS = [
    ["setup", "init"],
    ["setup", "check"],
    ["list"],
    ["instances", "list"],
    ["instances", "describe", "git/here"],
    ["instances", "status", "--connector", "git", "--instance", "here"],
    ["connections", "list", "git/here"],
    ["connections", "connect", "git/here"],
    ["operations", "list", "git/here"],
    ["invoke", "git/here", "x", "--input-json", "{}"],
    ["connectors", "integrations"],
    ["runs", "list"],
]


@pytest.fixture
def owner(tmp_path: Path) -> Path:
    """The home of somebody who is logged in at other programs, with a proxy and an identity host in the environment."""
    home = tmp_path / "home"
    for name in SAVED:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text('{"token": "sentinel", "tenant": "acme", "issuer": "https://identity.invalid"}')
        path.chmod(0o600)
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(NOTING)
    return tmp_path


def noted(owner: Path, words: list[str]) -> tuple[str, list[str]]:
    """Type a command; return what it printed, and what it did."""
    log = owner / "noted"
    log.unlink(missing_ok=True)
    environment = {
        "HOME": str(owner / "home"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(owner / "hook"),
        "NOTED": str(log),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), ADDRESSES[0]),
        **dict.fromkeys(("HEADWATER_ISSUER", "HEADWATER_LOGIN", "HEADWATER_TENANT", "OIDC_ISSUER"), ADDRESSES[1]),
    }
    line = [sys.executable, "-m", "headwater", "--output", "json", *words]
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)
    return ended.stdout + ended.stderr, log.read_text().splitlines()


@pytest.mark.clause("CLI-067")
def test_no_command_asks_who_its_owner_is(owner):
    """What is saved changes no answer, and nothing is looked up or connected to but sockets of this machine."""
    answers = []
    for words in COMMANDS:
        printed, done = noted(owner, words)
        assert "cli_internal" not in printed
        assert "sentinel" not in printed
        assert [line for line in done if line.startswith("open ")]
        asked = [line for line in done if not line.startswith("open ")]
        assert [line for line in asked if not line.startswith(("socket.connect '/", "socket.connect b'/"))] == []
        assert [line for name in SAVED for line in done if line == f"open {str(owner / 'home' / name)!r}"] == []
        answers.append(json.loads(printed)["ok"])
        if words == ["setup", "init"]:
            config = owner / "home" / ".config" / "headwater" / "config.toml"
            config.write_text(config.read_text() + "\n[connectors.git.instances.here]\n")
    assert answers.count(True) >= 8
