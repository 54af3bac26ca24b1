"""`docs/start.md`, followed to the letter: its files are written, its commands typed, its output compared."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start.md"
FENCE = re.compile(r"^```(?P<language>\w+)(?: title=(?P<title>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Typed:
    """A command of the page, and the lines that the page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Written:
    """A file that the page shows."""

    name: str
    text: str


def steps(page: str) -> Iterator[Typed | Written]:
    """Yield what a reader does, in order."""
    for fence in FENCE.finditer(page):
        if fence["title"]:
            yield Written(fence["title"], fence["body"])
        elif fence["language"] == "console":
            yield from typed(fence["body"])


def typed(body: str) -> Iterator[Typed]:
    """Yield the commands of one console block, each with the lines below it."""
    commands: list[Typed] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Typed(line[2:]))
        else:
            commands[-1].shown.append(line)
    yield from commands


def missing(shown: list[str], output: str) -> list[str]:
    """Return the shown lines that the output has not, in their order. `…` stands for anything."""
    lines = iter([_squeezed(line) for line in output.splitlines()])
    wanted = [_squeezed(line) for line in shown if line.strip() not in ("", "…")]
    return [line for line in wanted if not any(_fits(line, given) for given in lines)]


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _fits(pattern: str, line: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part.strip()) for part in pattern.split("…")), line) is not None


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that looks like a fresh checkout to somebody who types: a launcher, and an environment."""
    launcher = tmp_path / "headwater"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m headwater "$@"\n')
    launcher.chmod(0o755)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def test_the_first_connector_works_as_the_page_says(place: Path):
    """A stranger who follows the page sees what the page shows."""
    environment = {"HOME": str(place / "home"), "PATH": os.defpath, "LANG": "C.UTF-8"}
    commands = 0
    for step in steps(PAGE.read_text(encoding="utf-8")):
        if isinstance(step, Written):
            (place / step.name).write_text(step.text, encoding="utf-8")
            continue
        commands += 1
        result = subprocess.run(
            ["/bin/sh", "-c", step.command],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            start_new_session=True,
        )
        output = result.stdout + result.stderr
        assert missing(step.shown, output) == [], f"$ {step.command}\n{output}"
    assert commands > 15


@pytest.mark.parametrize(
    ("shown", "absent"),
    [(["a b"], []), (["a  b", "d"], []), (["d", "a b"], ["a b"]), (["c … 3"], []), (["c … 4"], ["c … 4"])],
)
def test_a_line_that_the_output_lacks_is_found(shown, absent):
    """The comparison itself: order counts, space does not, and the ellipsis is a gap."""
    assert missing(shown, "a b\nc 1 2 3\nd\n") == absent
