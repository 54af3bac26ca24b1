"""The command line, typed by a process that has it loaded already."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Typed:
    """What a command printed, and its exit status."""

    status: int | None
    stdout: str
    stderr: str

    @property
    def envelope(self) -> Any:
        """The one line of a refusal; nothing stands on stdout."""
        assert self.stdout == ""
        (line,) = self.stderr.splitlines()
        return json.loads(line)


@dataclass(frozen=True)
class Typist:
    """Types commands; every one finds the same folder. `told` is what a person was told while the demo ran."""

    process: "subprocess.Popen[str]"
    place: Path
    told: bytes

    def type(self, *words: str) -> Typed:
        """Type a command, and return what came of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"words": words, "place": str(self.place)}) + "\n")
        self.process.stdin.flush()
        return Typed(**json.loads(self.process.stdout.readline()))


@pytest.fixture(scope="session")
def typist(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typist]:
    """A typist with no terminal, in a folder where the demo has been collected."""
    place = tmp_path_factory.mktemp("typed")
    where = ["--config", f"{place}/config.toml", "--state-dir", f"{place}/state"]
    demo = [sys.executable, "-m", "headwater", *where, "demo"]
    told = subprocess.run(demo, check=True, capture_output=True, timeout=100).stderr
    words: Sequence[str] = [sys.executable, str(Path(__file__).with_name("typist.py"))]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield Typist(process, place, told)
        process.kill()
