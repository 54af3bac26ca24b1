"""The pages about the configuration, followed to the letter: their commands are typed and their files are read."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from configuration.documents import UID

from headwater.configuration.reading import parse

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("howto/configure-instances.md", "howto/custody.md", "reference/configuration.md")


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("page", PAGES)
def test_a_configuration_on_a_page_can_be_read(page):
    """Whoever copies it has one that fits."""
    shown = [block for block in blocks(page, "toml") if "connectors-local/" in block]
    assert shown
    for block in shown:
        assert parse(block.replace("owner_uid = 1000", f"owner_uid = {UID}").encode())


def test_the_commands_of_the_page_answer_as_it_says(tmp_path):
    """In order, in a home that has nothing yet; `…` stands for anything."""
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    for block in blocks("howto/configure-instances.md", "console"):
        for step in block.split("$ ./headwater ")[1:]:
            command, *shown = step.splitlines()
            words = [sys.executable, "-m", "headwater", *shlex.split(command)]
            done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            lines = iter(" ".join(line.split()) for line in done.stdout.splitlines())
            for line in shown:
                wanted = re.escape(" ".join(line.split())).replace("…", ".*").replace(r"\ .*", r"(?: .*)?")
                assert any(re.fullmatch(wanted, given) for given in lines), line
