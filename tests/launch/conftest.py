"""A Headwater with a connected shop, and consumers that its configuration pins; its owner really runs."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from connect.commands import Commands
from connect.conftest import Connected, Shop, commands, serving, set_up, shop  # noqa: F401 - fixtures are among them
from journeys.conftest import Answer, Headwater

from headwater.link.owner import Place, is_held

DASH = Path("/usr/bin/dash").resolve()
TOKEN = "token-of-anna"


class Launching(Connected):
    """One whose launches are processes of their own, beside an owner that answers them."""

    def run(self, words: Sequence[str], stdin: str) -> Answer:
        return Headwater.run(self, words, stdin) if "launch" in words else super().run(words, stdin)

    @property
    def owner(self) -> Place:
        return Place.of(self.state)

    def consumer(
        self,
        script: str,
        *,
        program: Path = DASH,
        digest: str = "",
        alias: str = "shop.me",
        more: str = "",
        further: Sequence[str] = (),
    ) -> None:
        """Pin the consumer `reader`: a shell with a script, or another program. `more` goes to its instance."""
        instance = f'[connectors.shop.instances.me]\nendpoint = "{self.url}"\n'
        other = "[connectors.shop.instances.other]\n"
        self.configure(instance + more + other + pinned(program, ["-c", script, *further], digest, alias))

    @property
    def url(self) -> str:
        text = (self.place / "config.toml").read_text()
        return text.partition('endpoint = "')[2].partition('"')[0]

    def launch(self, *words: str, stdin: str = "") -> Answer:
        return self.type("connections", "launch", "shop/me", "--consumer", "reader", *words, stdin=stdin)

    @contextmanager
    def launching(self, *words: str, **options: object) -> Iterator[subprocess.Popen]:
        """Launch in a process group of its own, with pipes."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        line = self.words("connections", "launch", "shop/me", "--consumer", "reader", *words)
        with subprocess.Popen(line, text=True, start_new_session=True, **pipes, **options) as process:
            yield process


@pytest.fixture
def headwater(tmp_path: Path, shop: Shop, commands: Commands) -> Iterator[Launching]:  # noqa: F811
    """A Headwater whose instance is connected; it has no owner yet."""
    with launching(tmp_path, shop, commands) as made:
        yield made


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, commands: Commands) -> Iterator[Launching]:  # noqa: F811
    """One such, for all tests that only launch: its owner, once started, answers them all."""
    with serving(Shop()) as ours, launching(tmp_path_factory.mktemp("launching"), ours, commands) as made:
        yield made


@contextmanager
def launching(
    place: Path,
    shop: Shop,  # noqa: F811
    commands: Commands,  # noqa: F811
    opened_by: str = "key_file",
) -> Iterator[Launching]:
    made = Launching(place, commands=commands)
    set_up(made, shop)
    made.write("collect.toml", (place / "collect.toml").read_text().replace("key_file", opened_by))
    made.consumer("cat <&3")
    assert made.connect().status == 0
    yield made
    end_owner(made.state)


def pinned(program: Path, arguments: Sequence[str], digest: str = "", alias: str = "shop.me") -> str:
    """Return the table of a consumer; without a digest, of the program as it is."""
    digest = digest or sha256(program.read_bytes()).hexdigest()
    executable = f'path = "{program}", sha256 = "{digest}", args = {json.dumps(list(arguments))}'
    head = f'[consumers.reader]\nexecutable = {{ {executable} }}\npass_env = ["LENT_"]\n'
    return f'{head}permissions = {{ connections = ["{alias}"] }}\n'


def end_owner(state: Path) -> None:
    """End the owner of a state directory, if one runs."""
    place = Place.of(state)
    if is_held(place):
        inode = place.lock.stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                os.kill(int(words[4]), signal.SIGKILL)
