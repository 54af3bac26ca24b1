"""The real GNOME keyring, on a bus of the tests' own: killed, frozen, locked, absent, and listened to."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest
from jeepney import HeaderFields, MessageFlag, MessageType, new_method_call
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg
from servers.keyring import SERVICE
from vault.conftest import SENTINEL, refusal

from headwater import limits
from headwater.secret import Secret
from headwater.vault.choosing import Choice, custody_for
from headwater.vault.secret_service import SecretServiceCustody

run = asyncio.run


def write(custody):
    return custody.write_new("con_1", Secret(SENTINEL))


@pytest.mark.clause("CLI-400", "CLI-402")
def test_what_was_acknowledged_survives_the_death_of_the_keyring(desktop):
    desktop.log_in()
    custody = SecretServiceCustody(desktop.socket)
    versions = []
    for _ in range(3):
        versions.append(run(write(custody)))
        desktop.kill()
        desktop.log_in()
    assert [run(custody.read("con_1", version)).text() for version in versions] == [SENTINEL] * 3
    on_disk = b"".join(path.read_bytes() for path in desktop.folder.rglob("*") if path.is_file())
    assert (desktop.files / "login.keyring").is_file()
    assert SENTINEL.encode() not in on_disk


@pytest.mark.clause("CLI-403", "CLI-415", "CLI-406")
def test_a_locked_keyring_is_unavailable_and_stays_locked(desktop):
    desktop.log_in()
    custody = SecretServiceCustody(desktop.socket)
    version = run(write(custody))
    desktop.lock()
    assert run(custody.state()) == "locked"
    for refused in (write(custody), custody.read("con_1", version), custody.delete("con_1", version), custody.probe()):
        error = refusal(refused)
        assert error.message == "The login keyring is locked."
        assert version not in repr(vars(error))
    assert desktop.locked() is True
    desktop.kill()
    desktop.log_in()
    assert run(custody.read("con_1", version)).text() == SENTINEL


def test_a_keyring_that_the_login_did_not_open_is_locked(desktop):
    desktop.log_in()
    desktop.kill()
    desktop.log_in("another password")
    assert run(SecretServiceCustody(desktop.socket).state()) == "locked"
    refusal(write(SecretServiceCustody(desktop.socket)))


@pytest.mark.clause("CLI-402", "CLI-403")
def test_the_session_collection_is_no_custody(desktop):
    """A keyring that nobody logged in to has the session's collection alone."""
    desktop.start_alone()
    assert desktop.locked() is None
    (found,) = desktop.call(SERVICE, "org.freedesktop.Secret.Service", "ReadAlias", "s", "session")
    assert found == "/org/freedesktop/secrets/collection/session"
    custody = SecretServiceCustody(desktop.socket)
    assert run(custody.state()) == "unavailable"
    refusal(write(custody))


@pytest.mark.clause("CLI-403", "CLI-412")
def test_no_keyring_is_started(desktop):
    """The bus could start one: the keyring is installed as a service."""
    with closing(open_dbus_connection(f"unix:path={desktop.socket}")) as bus:
        (names,) = unwrap_msg(bus.send_and_get_reply(message_bus.ListActivatableNames(), timeout=5))
    assert "org.freedesktop.secrets" in names
    custody = SecretServiceCustody(desktop.socket)
    assert run(custody.state()) == "unavailable"
    refusal(write(custody))
    refusal(custody.probe())
    assert not desktop.is_running()


@pytest.mark.parametrize("frozen", ["keyring", "bus"])
def test_a_keyring_that_hangs_is_given_up(frozen, desktop, monkeypatch):
    monkeypatch.setattr(limits, "KEYRING_CALL_SECONDS", 0.3)
    desktop.log_in()
    custody = SecretServiceCustody(desktop.socket)
    version = run(write(custody))
    with desktop.frozen(getattr(desktop, frozen)):
        began = time.monotonic()
        refusal(write(custody))
        refusal(custody.read("con_1", version))
        assert run(custody.state()) == "unavailable"
        assert time.monotonic() - began < 5
    assert run(custody.read("con_1", version)).text() == SENTINEL


@pytest.mark.clause("CLI-412", "CLI-400")
def test_nothing_is_unlocked_prompted_or_started_and_nothing_crosses_in_clear(desktop):
    desktop.log_in()
    custody = SecretServiceCustody(desktop.socket)
    with closing(open_dbus_connection(f"unix:path={desktop.socket}")) as monitor:
        place = message_bus.object_path, "org.freedesktop.DBus.Monitoring"
        message = new_method_call(message_bus, "BecomeMonitor", "asu", ([], 0))
        message.header.fields[HeaderFields.interface] = place[1]
        unwrap_msg(monitor.send_and_get_reply(message, timeout=5))
        version = run(write(custody))
        run(custody.read("con_1", version))
        run(custody.probe())
        run(custody.delete("con_1", version))
        desktop.lock()
        refusal(write(custody))
        seen = []
        with suppress(TimeoutError):
            while True:
                seen.append(monitor.receive(timeout=0.5))
    asked = [each for each in seen if each.header.message_type is MessageType.method_call]
    members = {each.header.fields[HeaderFields.member] for each in asked}
    assert {"CreateItem", "SearchItems", "GetSecret", "Delete", "OpenSession"} <= members
    assert {"Unlock", "Prompt", "StartServiceByName", "CreateCollection"}.isdisjoint(members)
    ours = [each for each in asked if each.header.fields[HeaderFields.member] != "Lock"]
    assert all(each.header.flags & MessageFlag.no_auto_start for each in ours if of_keyring(each))
    assert SENTINEL not in repr([each.body for each in seen])
    assert SENTINEL.encode() not in b"".join(bytes(part) for each in seen for part in byte_strings(each.body))


def of_keyring(message):
    return message.header.fields.get(HeaderFields.destination) == "org.freedesktop.secrets"


def byte_strings(value):
    if isinstance(value, bytes | bytearray):
        return [value]
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, int) and 0 <= item < 256 for item in value):
            return [bytes(value)]
        return [found for item in value for found in byte_strings(item)]
    return [found for item in value.values() for found in byte_strings(item)] if isinstance(value, dict) else []


@pytest.mark.clause("CLI-404", "CLI-414")
def test_an_environment_variable_is_no_way_to_a_bus(shared_desktop, monkeypatch, tmp_path):
    """Nothing is configured: a bus that only a variable names is not used, and nothing is written anywhere."""
    monkeypatch.setattr(os, "geteuid", lambda: 54321)  # whose /run/user/54321/bus there is none
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={shared_desktop.socket}")
    custody = custody_for(Choice())
    assert run(custody.state()) == "unavailable"
    refusal(write(custody))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "kind", ["missing", "file", "link", "linked folder", "relative", "writable folder", "not listening"]
)
def test_a_socket_that_is_not_admitted_is_not_connected_to(kind, shared_desktop, tmp_path, monkeypatch):
    place = tmp_path / "bus"
    inner = shared_desktop.folder / "linked"
    match kind:
        case "file":
            place.touch()
        case "link":
            place.symlink_to(shared_desktop.socket)
        case "linked folder":
            (tmp_path / "folder").symlink_to(shared_desktop.folder)
            place = tmp_path / "folder" / "bus"
        case "relative":
            monkeypatch.chdir(shared_desktop.folder)
            place = shared_desktop.socket.relative_to(shared_desktop.folder)
        case "writable folder":
            inner.mkdir()
            inner.chmod(0o777)
            place = inner / "bus"
            os.link(shared_desktop.socket, place)
        case "not listening":
            inner.mkdir(exist_ok=True)
            subprocess.run(
                [sys.executable, "-c", "import socket, sys; socket.socket(1).bind(sys.argv[1])", inner / "dead"]
            )
            place = inner / "dead"
    refusal(write(SecretServiceCustody(place)))


@pytest.mark.skipif(os.geteuid() != 0 and "CI" not in os.environ, reason="only root can be somebody else")
def test_another_users_process_behind_our_socket_is_not_talked_to(shared_desktop):
    """The kernel says who listens: the socket's file is ours, its process is not."""
    place = shared_desktop.folder / "theirs"
    code = (
        "import os, socket, sys; s = socket.socket(1); s.bind(sys.argv[1]); os.setuid(65534); s.listen();"
        "print(flush=True);"
        "c = s.accept()[0]; c.recv(1); c.recv(999); c.sendall(b'OK 00\\r\\n'); print(c.recv(999)); print(c.recv(999))"
    )
    theirs = subprocess.Popen([sys.executable, "-c", code, place], stdout=subprocess.PIPE)
    theirs.stdout.readline()
    refusal(write(SecretServiceCustody(place)))
    assert theirs.communicate(timeout=20)[0] == b"b'BEGIN\\r\\n'\nb''\n"
