"""The owner: one of a state directory, started when it is needed, ended when it is asked or has nothing to do."""

import asyncio
import fcntl
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest
from owner.conftest import METHODS

from headwater.errors import HeadwaterError
from headwater.link import owner as link
from headwater.link.owner import Place, ask, is_held, stop
from headwater.secret import Secret


def refused(work):
    with pytest.raises(HeadwaterError) as refusal:
        work()
    error = refusal.value
    return (error.code, error.stage, error.next_action)


@pytest.mark.clause("CLI-117", "CLI-118")
def test_it_is_started_and_asked_to_end(machine):
    """None, then one that answers; it is gone and the lock is free when the command returns."""
    assert machine.type("setup", "owner-stop") == {"disposition": "not_running", "state_path": str(machine.state)}
    machine.start()
    assert ask(machine.place, "greet")["incarnation"].startswith("owner_")
    assert machine.place.socket.stat().st_mode & 0o777 == 0o600
    assert machine.type("setup", "owner-stop")["disposition"] == "stopped"
    assert not is_held(machine.place)
    assert not machine.place.socket.exists()


def test_two_that_are_started_at_once_are_one(machine):
    """They meet at the lock; whoever asked is answered by the same one."""
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: machine.start(), range(6)))
    assert len({ask(machine.place, "greet")["incarnation"] for _ in range(3)}) == 1


@pytest.mark.clause("CLI-967")
def test_one_that_was_killed_is_followed_by_another(machine):
    """Its socket lies there still, and nobody holds its lock."""
    machine.start()
    first = ask(machine.place, "greet")["incarnation"]
    os.kill(machine.pid, signal.SIGKILL)
    while is_held(machine.place):
        pass
    assert machine.place.socket.exists()
    machine.start()
    assert ask(machine.place, "greet")["incarnation"] != first


def test_one_whose_folder_was_removed_takes_no_socket_along(machine):
    """Whoever serves in the new folder goes on."""
    machine.start()
    first, lock = machine.pid, os.open(machine.place.lock, os.O_RDONLY)
    shutil.rmtree(machine.state)
    machine.type("setup", "init")
    machine.start()
    second = machine.pid
    os.kill(first, signal.SIGTERM)
    fcntl.flock(lock, fcntl.LOCK_SH)
    os.close(lock)
    assert ask(machine.place, "greet")
    assert machine.pid == second != first


def test_a_fault_of_its_own_is_noted_and_told_to_its_client_alone(machine):
    machine.config.write_text(machine.config.read_text() + "\n[connectors.git.instances.here]\n")
    machine.start()
    with pytest.raises(HeadwaterError) as refusal:
        ask(machine.place, "stop", selection=["git", "here", None], fields={"token": "sentinel"})
    assert refusal.value.code == "outcome_unknown"
    (note,) = (machine.state / "crashes").iterdir()
    assert "sentinel" not in note.read_text()
    assert ask(machine.place, "greet")


def test_it_gets_nothing_of_the_surroundings_that_could_be_a_secret(machine, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "sentinel-environment")
    machine.start()
    told = Path(f"/proc/{machine.pid}/environ").read_bytes()
    assert b"sentinel" not in told
    assert os.getsid(machine.pid) == machine.pid


@pytest.mark.clause("CLI-115")
def test_a_lock_that_is_held_by_nobody_who_answers(machine, monkeypatch):
    """Nothing is signalled: whoever holds it lives on."""
    holder = "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); fcntl.flock(f, 2); print(1); "
    words = [sys.executable, "-c", f"{holder}sys.stdout.flush(); sys.stdin.read()", str(machine.place.lock)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert refused(lambda: stop(machine.place)) == ("unavailable", "stop", "retry_explicitly")
        assert process.poll() is None
        monkeypatch.setattr("headwater.limits.OWNER_START_SECONDS", 1.0)
        with pytest.raises(HeadwaterError, match="does not answer"):
            machine.start()
        process.stdin.close()


@pytest.mark.clause("CLI-116")
def test_one_that_agrees_and_lingers(machine, monkeypatch):
    """The wait for its end has a bound."""
    monkeypatch.setattr("headwater.limits.OWNER_STOP_SECONDS", 0.5)
    lock = os.open(machine.place.lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(machine.place.socket))
        listener.listen()

        def agree():
            link_, _ = listener.accept()
            with link_:
                link_.recv(4096)
                link_.sendall(b'{"result":{}}\n')

        Thread(target=agree, daemon=True).start()
        assert refused(lambda: stop(machine.place)) == ("timeout", "stop", "retry_explicitly")
    os.close(lock)


@pytest.mark.clause("CLI-114")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("whose", ["owner.lock", "owner.sock", "."])
def test_what_is_somebody_elses_is_left_alone(machine, whose):
    machine.place.lock.touch()
    machine.place.socket.touch()
    os.chown(machine.state / whose, 12345, 12345)
    assert refused(lambda: stop(machine.place)) == ("forbidden", "stop", "check_configuration")
    assert machine.type("setup", "owner-stop", status=1)["code"] == "forbidden"


def test_a_state_directory_that_others_may_change_is_not_trusted(machine):
    """Whoever can put a socket there could answer for the owner."""
    machine.state.chmod(0o777)
    assert refused(lambda: stop(machine.place))[0] == "forbidden"
    assert refused(machine.start)[0] == "forbidden"


@pytest.mark.clause("CLI-065")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_peer_of_another_user_is_not_answered(machine):
    """Whatever the modes of the files say: the kernel names the peer."""
    machine.start()
    for path in (machine.folder, machine.state):
        path.chmod(0o755)
    for path in machine.folder.parents:
        path.chmod(path.stat().st_mode | 0o055)
    machine.place.socket.chmod(0o666)
    code = (
        "import os, socket, sys\nos.setuid(12345)\nlink = socket.socket(socket.AF_UNIX)\nlink.settimeout(10)\n"
        "link.connect(sys.argv[1])\ntry:\n"
        '    link.sendall(b\'{"version":"headwater-owner/1","want":"shutdown"}\\n\')\n'
        "    print(link.recv(100))\nexcept (ConnectionResetError, BrokenPipeError):\n    print(b'')"
    )
    asked = subprocess.run([sys.executable, "-c", code, str(machine.place.socket)], capture_output=True, text=True)
    assert asked.stdout == "b''\n", asked.stderr
    assert is_held(machine.place)


@pytest.mark.clause("CLI-065")
def test_an_owner_of_another_user_is_not_asked(machine, monkeypatch):
    """Both ends look."""
    machine.start()
    monkeypatch.setattr("headwater.link.unix._peer", lambda _link: 12345)
    assert refused(lambda: ask(machine.place, "greet"))[0] == "unavailable"


@pytest.mark.clause("CLI-824")
def test_one_of_another_build_is_not_used(machine, monkeypatch):
    machine.start()
    monkeypatch.setattr(link, "build", lambda: "0" * 64)
    assert refused(lambda: ask(machine.place, "greet")) == ("owner_build_mismatch", "readiness", "stop_owner")
    assert refused(machine.start)[0] == "owner_build_mismatch"
    assert stop(machine.place) == "stopped"


def test_a_client_that_says_nothing_of_use_is_dropped(machine):
    """And the next one is served."""
    machine.start()
    for said in (b"", b"\x00\xff", b"[]\n", b"x" * (2 << 20)):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(machine.place.socket))
            try:
                client.sendall(said)
                client.shutdown(socket.SHUT_WR)
                assert client.recv(100) in (b"",)
            except OSError:
                pass
    assert ask(machine.place, "greet")


@pytest.mark.clause("CLI-828")
def test_it_ends_when_nobody_asks(machine, monkeypatch):
    """After its time, which is short here; not while an instance is scheduled."""
    code = "import sys, headwater.limits as l; l.OWNER_IDLE_SECONDS = 0.3; l.OWNER_TICK_SECONDS = 0.1\n"
    code += "from headwater.cli.main import main; main(sys.argv[1:])"
    words = [sys.executable, "-c", code, *machine.words("owner")[3:]]
    assert subprocess.run(words, timeout=30).returncode == 0
    machine.type("instances", "add", "demo/x", "--set", "base_url=http://127.0.0.1:9")
    machine.type("collect", "schedule", "set", "demo/x", "--every", "7d")
    with subprocess.Popen(words) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        assert machine.type("setup", "owner-stop")["disposition"] == "stopped"
        assert process.wait(20) == 0


def test_it_ends_where_its_state_directory_is_gone(machine):
    """Nobody could find it any more; one that is started there is another."""
    machine.start()
    pid = machine.pid
    machine.state.rename(machine.folder / "elsewhere")
    descriptor = os.pidfd_open(pid)
    assert select.select([descriptor], [], [], 20)[0]
    os.close(descriptor)
    machine.start()
    assert machine.pid not in (0, pid)


def test_a_second_one_is_refused(machine):
    machine.start()
    assert machine.type("owner", status=1)["code"] == "run_active"


@pytest.mark.clause("CLI-259", "CLI-827")
def test_without_an_owner_nothing_is_known_of_a_program(machine, acme):
    """That is not the same as one that is known not to run."""
    machine.instance("a", "https://acme.example")
    assert machine.status("a")["state"] == "owner_unavailable"
    machine.start()
    assert machine.status("a")["state"] == "not_running"


def signed_in(machine, name, token="token-of-ada"):
    async def work():
        signs = machine.signs_in(f"acme_tickets.{name}")
        return await signs.start(METHODS["token"], {"token": Secret(token)})

    return asyncio.run(work())


def test_peer_credentials_are_the_kernels():
    """What the check rests on."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        _, user, _ = struct.unpack("3i", ours.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        assert user == os.geteuid()
    assert Place.of(Path("/x")).socket == Path("/x/owner.sock")
