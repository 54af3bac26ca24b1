"""A Headwater with an owner that really runs, and instances whose integrations run in processes of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from adapters.conftest import ACME, acme  # noqa: F401 - a provider for the tests

from headwater.adapters.by_owner import ByOwner
from headwater.link.owner import Place, build, is_held, started
from headwater.manifest.integration import read_integration

METHODS = read_integration((ACME / "integration.json").read_bytes()).methods


def holder(place: Place) -> int:
    """Return the process that holds the lock of an owner."""
    inode = place.lock.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            return int(words[4])
    return 0


class Machine:
    """One person's Headwater in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state, self.config = folder / "s", folder / "c" / "config.toml"
        self.config.parent.mkdir(mode=0o700)
        self.place = Place.of(self.state)
        self.type("setup", "init")

    def words(self, *words: str) -> list[str]:
        where = ["--config", str(self.config), "--state-dir", str(self.state), "--output", "json"]
        return [sys.executable, "-m", "headwater", *where, *words]

    def type(self, *words: str, status: int = 0) -> dict[str, Any]:
        """Type a command; return its result, or the data of its refusal."""
        ended = subprocess.run(self.words(*words), capture_output=True, text=True, timeout=60)
        assert ended.returncode == status, (ended.stdout, ended.stderr)
        answer = json.loads(ended.stdout or ended.stderr)
        return answer["result"] if answer["ok"] else answer["error"]["data"]

    def instance(self, name: str, endpoint: str, code: str | None = None) -> str:
        """Configure an instance of a copy of the guest, with other code if that is given; return its id."""
        folder = self.folder / name
        shutil.copytree(ACME, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        if code is not None:
            (folder / "integration.py").write_text(code)
        self.type("instances", "add", f"acme_tickets/{name}", "--from", str(folder))
        text = self.config.read_text()
        table = f'[connectors.acme_tickets.instances.{name}]\nendpoint = "{endpoint}"\n'
        self.config.write_text(f"{text}\n{table}")
        return f"acme_tickets.{name}"

    def status(self, name: str) -> dict[str, Any]:
        return self.type("instances", "status", "--connector", "acme_tickets", "--instance", name)["observation"]

    def start(self) -> None:
        build.cache_clear()  # a file that is edited between two tests makes another build of this one
        started(self.place, self.config)

    def signs_in(self, instance_id: str) -> ByOwner:
        """Return who signs in to an instance through the owner, which is started if need be."""
        return ByOwner(self.place, instance_id, self.start)

    @property
    def pid(self) -> int:
        """The process that holds the owner's lock."""
        return holder(self.place)

    def close(self) -> None:
        if is_held(self.place) and (pid := self.pid):
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.close()
