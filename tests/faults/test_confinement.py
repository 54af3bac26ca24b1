"""A connector that wants out, held in every way there is: files, sockets, other programs, and its own death."""

import asyncio
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headwater.process.confinement.ways import BUBBLEWRAP, ISOLATED, LANDLOCK, NONE, SECCOMP, Way, hindrance
from headwater.process.launch import Launch

GUEST = Path(__file__).parents[1] / "guests" / "escapes.py"
SECRET = "sentinel-6f1d"

each_way = pytest.mark.parametrize("way", [BUBBLEWRAP, ISOLATED, LANDLOCK], ids=lambda way: way.name)
ABSTRACT = f"headwater-test-{os.getpid()}"


@dataclass(frozen=True)
class World:
    """A home with a secret, a Headwater in it, a connector's folder, and what listens on this machine."""

    home: Path
    port: int
    other_port: int
    datagrams: socket.socket
    bystander: int

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "headwater"

    @property
    def config(self) -> Path:
        return self.home / ".config" / "headwater"

    @property
    def folder(self) -> Path:
        return self.home / "connectors" / "guest"

    def launch(self, way: Way, *bindings: str, command: Any = (), folder: Path | None = None, **more: Any) -> Launch:
        """Return the guest, held in a way to some bindings."""
        given: dict[str, Any] = {**{name: {} for name in bindings}, **more}
        spool, words = self.state / "spool", command or [sys.executable, "escapes.py"]
        return Launch(words, folder or self.folder, spool, given, [self.state, self.config], {}, way=way)

    def tried(self, launch: Launch, *tries: tuple[str, Any]) -> list[bool]:
        """Let the guest try ways out; return for each whether it got out."""
        if lack := hindrance(launch.way or NONE, launch.folder or Path(), launch.confinement):
            assert "CI" not in os.environ, lack
            pytest.skip(f"needs {launch.way}: {lack}")

        async def trying() -> list[bool]:
            child, lines = await launch(), []
            for line in tries:
                await child.send(json.dumps(line).encode() + b"\n")
            await child.close_input()
            try:
                while not (read := await child.read(30)).ended:
                    assert read.lines, "the guest is silent"
                    lines += read.lines
            finally:
                exit_ = await child.stop()
            assert exit_.is_success, child.stderr_tail
            return [json.loads(line)[1] is True for line in lines]

        return asyncio.run(trying())

    def got_out(self, launch: Launch, *tries: tuple[str, Any]) -> list[tuple[str, Any]]:
        """Return the tries that succeeded."""
        came = self.tried(launch, *tries)
        assert len(came) == len(tries)
        return [line for line, out in zip(tries, came, strict=True) if out]

    @property
    def secrets(self) -> list[tuple[str, Any]]:
        """Reading what is the owner's, Headwater's, and another connector's."""
        files = (self.home / ".ssh/id", self.state / "headwater.db", self.config / "collect.toml")
        return [("read", str(path)) for path in (*files, self.state / "connectors/other/token")]

    @property
    def sockets(self) -> list[tuple[str, Any]]:
        """Every kind of socket that leads out."""
        internet = [(kind, self.port) for kind in ("tcp", "fast_open", "multipath", "udp")]
        return [*internet, *self.local_sockets, ("listen", "127.0.0.1")]

    @property
    def local_sockets(self) -> list[tuple[str, Any]]:
        return [("unix", str(self.home / "agent")), ("abstract", ABSTRACT), ("family", 40), ("ring", 4), ("keys", 0)]

    @property
    def programs(self) -> list[tuple[str, Any]]:
        return [(kind, self.bystander) for kind in ("attach", "environ", "kill")]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world of its own for each test."""
    home = (tmp_path / "home").resolve()
    monkeypatch.setenv("HOME", str(home))
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        port, other = (server.getsockname()[1] for server in servers)
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", port))
        bystander = subprocess.Popen(["sleep", "600"], env={"TOKEN": SECRET})
        stack.callback(bystander.wait)
        stack.callback(bystander.kill)
        made = World(home, port, other, datagrams, bystander.pid)
        for path in (home / ".ssh/id", made.state / "headwater.db", made.config / "collect.toml"):
            path.parent.mkdir(parents=True)
            path.write_text(SECRET)
        (made.state / "connectors/other").mkdir(parents=True)
        (made.state / "connectors/other/token").write_text(SECRET)
        (made.state / "spool/tmp").mkdir(parents=True)
        made.folder.mkdir(parents=True)
        shutil.copy(GUEST, made.folder)
        for address in (str(home / "agent"), f"\0{ABSTRACT}"):
            agent = stack.enter_context(socket.socket(socket.AF_UNIX))
            agent.bind(address.encode())
            agent.listen()
        yield made


@each_way
def test_without_bindings_there_is_nothing_but_its_own(world, way):
    """No file of the owner's, no socket of any kind, no other program; its own folder, the SDK, and a scratch."""
    own = [("read", "escapes.py"), ("read", str(world.folder / "escapes.py")), ("read", "/etc/hosts")]
    own += [("import", "headwater.sdk"), ("import", "ssl"), ("scratch", 0), ("spool", 0), ("pair", 0), ("core", 0)]
    launch = world.launch(way)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert world.got_out(launch, *world.secrets, *world.sockets, *world.programs) == []
    assert world.got_out(launch, *own) == own


@each_way
def test_without_network_not_a_byte_arrives(world, way):
    """Nothing that was sent to this machine's own servers came there."""
    world.got_out(world.launch(way, "filesystem"), *world.sockets)
    world.datagrams.setblocking(False)
    with pytest.raises(BlockingIOError):
        world.datagrams.recv(10)


@each_way
def test_a_connector_with_files_reads_the_owners_but_not_ours(world, way):
    """`filesystem` is the owner's files, to read: not the state, not the configuration, no other connector's."""
    owners, *ours = world.secrets
    launch = world.launch(way, "filesystem")
    assert world.got_out(launch, owners, *ours, ("list", str(world.home / ".ssh"))) == [
        owners,
        ("list", str(world.home / ".ssh")),
    ]
    assert world.got_out(launch, *world.sockets, *world.programs) == []


@each_way
@pytest.mark.parametrize("bindings", [(), ("filesystem",), ("network", "filesystem")])
def test_it_writes_nothing_but_its_scratch_and_spool(world, way, bindings):
    """Whatever it was told that it wrote, nothing changed: not beside its code, not its code, not the state."""
    before = _files(world.home)
    places = (world.home / "new", world.home / ".ssh/id", world.folder / "escapes.py", world.state / "headwater.db")
    kept = [("scratch", 0), ("spool", 0)]
    launch = world.launch(way, *bindings)
    came = world.got_out(launch, *(("write", str(path)) for path in places), *kept)
    assert came[-2:] == kept
    after = _files(world.home)
    spooled = {path: text for path, text in after.items() if path.is_relative_to(world.state / "spool")}
    assert {path: text for path, text in after.items() if path not in spooled} == before
    assert (world.state / "spool" / "x").read_text() == "kept"


@each_way
def test_a_connector_with_network_has_the_network_alone(world, way):
    """`network` is the internet's sockets. Local sockets, of files or abstract, and keyrings stay shut."""
    reached = [("tcp", world.port), ("udp", world.port), ("tcp", world.other_port)]
    launch = world.launch(way, "network")
    assert world.got_out(launch, *reached, *world.local_sockets, *world.secrets, *world.programs) == reached


@each_way
def test_a_browsers_port_is_the_one_port_that_it_reaches(world, way):
    """`browser_automation` without `network`: TCP to that port, and to no other; no datagram, no listening."""
    browser = {"browser_automation": {"interface": "cdp", "ws_url": f"ws://127.0.0.1:{world.port}/devtools/x"}}
    launch = world.launch(way, **browser)
    tries = [*world.sockets, ("tcp", world.other_port)]
    assert world.got_out(launch, *tries, *world.secrets) == [("tcp", world.port)]


@each_way
def test_a_connector_may_listen_and_yet_not_call(world, way):
    """`loopback_listen` is a door of its own, and no way out."""
    launch = world.launch(way, "loopback_listen")
    assert world.got_out(launch, *world.sockets, *world.secrets) == [("listen", "127.0.0.1")]


@each_way
def test_a_browser_profile_is_written_though_it_lies_in_the_state(world, way):
    """`browser_profile` opens that one folder of the state, and nothing beside it."""
    profile = world.state / "browsers" / "guest"
    profile.mkdir(parents=True)
    launch = world.launch(way, browser_profile={"profile_path": str(profile)})
    wrote = ("write", str(profile / "cookies"))
    assert world.got_out(launch, wrote, *world.secrets) == [wrote]
    assert (profile / "cookies").read_text() == "out"


@each_way
@pytest.mark.parametrize("bindings", [(), ("filesystem",)])
def test_a_connector_that_lives_in_the_state_sees_its_own_folder_there(world, way, bindings):
    """One that was added lies among the others, and sees none of them."""
    folder = world.state / "connectors" / "mine"
    folder.mkdir()
    shutil.copy(GUEST, folder)
    launch = world.launch(way, *bindings, folder=folder)
    own = ("read", str(folder / "escapes.py"))
    assert world.got_out(launch, own, *world.secrets[1:]) == [own]


@each_way
def test_a_state_inside_the_connectors_folder_is_hidden_all_the_same(world, way):
    """The folder is the connector's, but for what is ours in it."""
    shutil.copy(GUEST, world.home)
    launch = world.launch(way, folder=world.home)
    owners, *ours = world.secrets
    assert world.got_out(launch, owners, *ours) == [owners]


@each_way
def test_a_link_out_of_the_folder_leads_nowhere(world, way):
    """A link in the connector's own folder does not widen what it sees."""
    (world.folder / "link").symlink_to(world.home / ".ssh")
    (world.folder / "state").symlink_to(world.state)
    tries = ("link/id", "state/headwater.db", f"/proc/self/root{world.home}/.ssh/id", "../../.ssh/id")
    assert world.got_out(world.launch(way), *(("read", path) for path in tries)) == []


@each_way
def test_what_an_ad_hoc_command_names_is_its_own(world, way):
    """Without a folder: the script with what lies beside it, and the files that its words name, to change too."""
    named, beside = world.folder / "named", world.folder / "beside"
    named.write_text("")
    beside.write_text("beside")
    command = [sys.executable, str(world.folder / "escapes.py"), str(named), str(world.state / "headwater.db")]
    launch = Launch(command, None, world.state / "spool", {}, [world.state], {}, way=way)
    own = [("read", str(beside)), ("write", str(named))]
    assert world.got_out(launch, *own, *world.secrets) == own
    assert named.read_text() == "out"


def test_seccomp_alone_holds_the_network_and_says_that_it_holds_no_files(world):
    """The way for an old kernel."""
    assert SECCOMP.holds == ("network",)
    assert world.got_out(world.launch(SECCOMP), *world.sockets, world.secrets[0]) == [world.secrets[0]]


def test_a_connector_that_nothing_holds_is_told_of(world):
    """Each binding that it was not given and has all the same is named."""
    told: list[Any] = []
    launch = world.launch(NONE, "network")
    launch = Launch(**{**vars(launch), "loose": told.append})
    assert world.got_out(launch, world.secrets[0]) == [world.secrets[0]]
    assert told == [["filesystem"]]


@pytest.mark.parametrize("way", [BUBBLEWRAP, SECCOMP], ids=lambda way: way.name)
def test_a_kernel_without_landlock_keeps_the_other_ways(world, way):
    """Here a filter takes Landlock's calls away, as an old kernel does: whoever needs them says so, the rest works."""
    lines = [
        "import struct, sys",
        "from pathlib import Path",
        "from headwater.process.confinement import boundary, inside, view, ways",
        "lines = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x7FFF0000)]",
        "inside._filter(b''.join(struct.pack('=HBBI', *line) for line in lines))",
        "paths = tuple(view.interpreter_paths())",
        "for ports in ((), (80,)):",
        "    held = boundary.Confinement(Path(sys.argv[1]), ports=ports, readable=paths)",
        "    print([way.name for way in ways.WAYS if not ways.hindrance(way, Path('/'), held)])",
    ]
    words = [sys.executable, "-c", "\n".join(lines), str(world.state / "spool")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    works = done.stdout.splitlines()
    assert len(works) == 2, done.stderr
    if way is BUBBLEWRAP and shutil.which("bwrap") is None and "CI" not in os.environ:
        pytest.skip("needs bubblewrap")
    assert all(f"'{way.name}'" in line for line in works)
    assert all("landlock" not in line for line in works)


# A child's life is the same in each way.

every_way = pytest.mark.parametrize("way", [BUBBLEWRAP, ISOLATED, LANDLOCK, NONE], ids=lambda way: way.name)


def living(world: World, way: Way, script: str, use: Any) -> Any:
    async def going() -> Any:
        child = await world.launch(way, command=["/bin/sh", "-c", script])()
        try:
            return await use(child)
        finally:
            await child.stop()

    return asyncio.run(going())


@every_way
@pytest.mark.parametrize(
    ("script", "code", "number"),
    [("exit 0", 0, None), ("exit 7", 7, None), ("exit 255", 255, None), ("kill -SEGV $$", None, signal.SIGSEGV)],
)
def test_the_exit_is_the_programs_own(world, way, script, code, number):
    """Status or signal, whoever stands between."""
    exit_ = living(world, way, script, lambda child: child.wait(30))
    assert (exit_.code, exit_.signal) == (code, number)


@every_way
def test_sigterm_comes_to_the_program_and_leaves_it_time(world, way):
    """It may say its last words and exit as it likes."""

    async def use(child: Any) -> Any:
        assert list((await child.read(30)).lines) == [b"ready"]
        return await child.stop()

    script = 'trap "echo bye >> $TMPDIR/words; exit 9" TERM; echo ready; while :; do sleep 0.05; done'
    assert living(world, way, script, use).code == 9
    assert (world.state / "spool/tmp/words").read_text() == "bye\n"


@every_way
def test_a_closed_stdout_is_seen_though_the_program_lives(world, way):
    """Nobody else holds the pipe."""

    async def use(child: Any) -> Any:
        read = await child.read(30)
        return list(read.lines), (await child.read(30)).ended, await child.wait(0)

    assert living(world, way, "echo x; exec >&-; sleep 60", use) == ([b"x"], True, None)


@every_way
def test_who_ignores_sigterm_and_who_is_left_behind_is_gone_after_stop(world, way):
    """Nobody of its processes stays, in whichever session."""

    async def use(child: Any) -> Any:
        assert (await child.read(30)).lines
        child.kill()
        return await child.wait(30)

    exit_ = living(world, way, "trap '' TERM; sleep 600 & echo ready; wait", use)
    assert exit_.signal == signal.SIGKILL
    assert _left(world.state / "spool") == []


def test_a_kill_reaches_a_program_whose_life_is_not_tied_to_bubblewraps_yet(world, monkeypatch):
    """It ties it a moment after the program began: here it never does."""
    monkeypatch.setattr("headwater.process.confinement.bubblewrap._LIFE", ("--new-session",))

    async def use(child: Any) -> Any:
        assert (await child.read(30)).lines
        child.kill()
        return await child.wait(30)

    assert living(world, BUBBLEWRAP, "echo ready; exec sleep 600", use).signal == signal.SIGKILL
    assert _left(world.state / "spool") == []


@every_way
def test_the_program_dies_with_its_host(world, way):
    """A host that is killed takes the connector along."""
    lines = [
        "import asyncio, json, sys",
        "from pathlib import Path",
        "from headwater.process.confinement import ways",
        "from headwater.process.launch import Launch",
        "async def main():",
        "    words, folder = ['/bin/sh', '-c', 'echo ready; exec sleep 600'], Path(sys.argv[1])",
        "    way = next(way for way in ways.WAYS if way.name == sys.argv[3])",
        "    child = await Launch(words, folder, Path(sys.argv[2]), {}, [], {}, way=way)()",
        "    print((await child.read(30)).lines, flush=True)",
        "    await asyncio.sleep(600)",
        "asyncio.run(main())",
    ]
    words = [sys.executable, "-c", "\n".join(lines), str(world.folder), str(world.state / "spool"), way.name]
    host = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert host.stdout is not None
    assert b"ready" in host.stdout.readline()
    host.kill()
    host.communicate(timeout=30)
    assert _left(world.state / "spool") == []


def _files(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


def _left(spool: Path) -> list[str]:
    """Return the processes of a spool that do not come to an end."""
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"={spool}".encode() in (entry / "environ").read_bytes():
                descriptor = os.pidfd_open(int(entry.name))
                if not select.select([descriptor], [], [], 10)[0]:
                    left.append((entry / "cmdline").read_text())
                os.close(descriptor)
    return left
