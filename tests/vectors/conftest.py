"""Scripts of the notation played for real: a child process, the host, SQLite, all in a folder of their own."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest
from vectors.notation import done_line, lines_of, manifest_text

from headwater.collect.plan import PROACTIVE, Authority
from headwater.collect.ports import Outcome
from headwater.events import BatchStored
from headwater.host import Host
from headwater.joining.programs import CollectRequest, Watching
from headwater.settings import Settings

GUEST = Path(__file__).parents[1] / "guests" / "plays.py"


@dataclass(frozen=True)
class Stage:
    """A Headwater in a folder of its own, on which scripts of one manifest are played."""

    folder: Path
    manifest: str
    guest = GUEST

    @property
    def _script(self) -> Path:
        return self.folder / "script.json"

    @property
    def _told(self) -> Path:
        return self._script.with_suffix(".start")

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-SE", str(GUEST), str(self._script), str(self._told)]

    @property
    def _settings(self) -> Settings:
        return Settings(self.folder / "config.toml", self.folder / "state")

    @property
    def start(self) -> dict[str, Any]:
        """The START that the last child was told."""
        return json.loads(self._told.read_text())

    def write(self, script: str, terminal: str, *, off: int = 0, exit_code: int | None = None, held: bool) -> None:
        """Write what the child will play; `held` keeps its DONE back until it is asked to leave."""
        lines = lines_of(script)
        done, agreeing = done_line(terminal, sum(json.loads(line)["type"] == "RECORD" for line in lines) + off)
        members: dict[str, Any] = {"exit": agreeing if exit_code is None else exit_code}
        members |= {"lines": lines, "last_words": done} if held else {"lines": [*lines, *done]}
        self._told.touch()
        self._script.write_text(json.dumps(members, default=bytes.decode))

    def play(
        self, script: str, terminal: str = "ok", *, scope: str = "", cancel: bool = False,
        authority: Authority = PROACTIVE, **play: Any,
    ) -> Outcome:  # fmt: skip
        """Run a script to its end. `cancel` is the owner's, recorded when everything but DONE is stored."""
        self.write(script, terminal, held=cancel, **play)
        host = Host(self._settings)
        program = host.program_of(manifest_text(self.manifest), self.command)
        request = CollectRequest(program, streams=scope.split(), authority=authority)
        runs: list[Any] = []

        def observe(event: Any) -> None:
            if cancel and isinstance(event, BatchStored):
                runs[0].cancel()

        return asyncio.run(host.collect(request, Watching(observe, started=runs.append)))

    def play_until(self, script: str, sql: str) -> "subprocess.Popen[bytes]":
        """Start a host whose child plays a script and stays; return it once a query of the database gives a row."""
        self.write(script, "–", held=True)
        manifest = self.folder / "manifest.json"
        manifest.write_bytes(manifest_text(self.manifest))
        where = ["--config", str(self._settings.config_path), "--state-dir", str(self._settings.state_dir)]
        words = [*where, "--output", "json", "collect", "--manifest", str(manifest), "--", *self.command]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([sys.executable, "-m", "headwater", *words], env=environment, **pipes)
        while not self._has(sql):
            assert process.poll() is None, process.communicate()
        return process

    def _has(self, sql: str) -> bool:
        if not self._settings.database_path.exists():
            return False
        try:
            return bool(self.ask(sql))
        except apsw.SQLError:  # no tables yet
            return False

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the database, or change it behind the host's back."""
        connection = apsw.Connection(str(self._settings.database_path))
        connection.set_busy_timeout(10_000)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def cursors(self, namespace: str = "global") -> dict[str, str]:
        """Return the committed cursors; what a script calls c for a cursor {"at": c}."""
        rows = self.ask("SELECT stream, cursor FROM checkpoints WHERE namespace = ? ORDER BY stream", namespace)
        return {stream: json.loads(cursor)["at"] for stream, cursor in rows}

    def kept(self) -> tuple[str, list[str], dict[str, str]]:
        """Return of the last run, as the database has it: status, what committed, why each other cursor did not."""
        ((run, status),) = self.ask("SELECT id, status FROM runs ORDER BY id DESC LIMIT 1")
        return status, *self.fates(run)

    def fates(self, run: int) -> tuple[list[str], dict[str, str]]:
        """Return what committed in a run, and why each other cursor did not."""
        rows = self.ask("SELECT stream, committed, reason FROM decisions WHERE run = ? ORDER BY stream", run)
        return [stream for stream, yes, _ in rows if yes], {stream: reason for stream, yes, reason in rows if not yes}


@pytest.fixture
def stage(tmp_path):
    """Set up a stage for a manifest."""
    return lambda manifest: Stage(tmp_path, manifest)
