"""A session bus of a test's own, and the real GNOME keyring on it: started, killed, frozen, locked, started again."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from jeepney import DBusAddress, DBusErrorResponse, MessageFlag, Properties, new_method_call
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg
from servers.running import running

PASSWORD = "opens the test keyring"
SERVICE = "/org/freedesktop/secrets"
LOGIN = "/org/freedesktop/secrets/collection/login"
_DAEMON = ("gnome-keyring-daemon", "--foreground", "--components=secrets")
_READY_SECONDS = 20.0


class Desktop:
    """A session bus in a folder, and the keyring of somebody who logs in and out there."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.socket = folder / "bus"
        self.files = folder / "share" / "keyrings"
        self._stack = stack
        self.bus = self._start("dbus-daemon", "--session", "--nofork", f"--address=unix:path={self.socket}")
        until(self.socket.exists)
        self.keyring: subprocess.Popen[bytes] | None = None

    def log_in(self, password: str = PASSWORD) -> None:
        """Start the keyring and unlock it, as a login does; return when its collection is there."""
        self.keyring = self._start(*_DAEMON, "--unlock")
        self.keyring.stdin.write(password.encode())
        self.keyring.stdin.close()
        self.keyring.stdin = None
        until(lambda: self.locked() is not None)

    def start_alone(self) -> None:
        """Start a keyring that nobody logs in to: it has no login collection."""
        self.keyring = self._start(*_DAEMON)
        until(self.is_running)

    def is_running(self) -> bool:
        """Whether a keyring serves the bus."""
        return self._answers(SERVICE, "Service", "Collections") is not None

    def kill(self) -> None:
        """Kill the keyring at once, as a crash does."""
        self.keyring.kill()
        self.keyring.wait()
        until(lambda: not self.is_running())

    @contextmanager
    def frozen(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Let a process live and answer nothing."""
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def lock(self) -> None:
        """Lock the login collection, as its owner may at any time."""
        self.call(SERVICE, "org.freedesktop.Secret.Service", "Lock", "ao", [LOGIN])

    def locked(self) -> bool | None:
        """Whether the login collection is locked; None where there is none."""
        return self._answers(LOGIN, "Collection", "Locked")

    def call(self, path: str, interface: str, method: str, signature: str, *body: object) -> tuple:
        """Make one call of the keyring."""
        with closing(open_dbus_connection(f"unix:path={self.socket}")) as bus:
            place = DBusAddress(path, "org.freedesktop.secrets", interface)
            message = new_method_call(place, method, signature, body)
            return unwrap_msg(bus.send_and_get_reply(message, timeout=_READY_SECONDS))

    def _answers(self, path: str, interface: str, name: str) -> object:
        """Return a property; None where nobody answers, and nobody is started."""
        try:
            with closing(open_dbus_connection(f"unix:path={self.socket}")) as bus:
                place = DBusAddress(path, "org.freedesktop.secrets", f"org.freedesktop.Secret.{interface}")
                message = Properties(place).get(name)
                message.header.flags |= MessageFlag.no_auto_start
                ((_, value),) = unwrap_msg(bus.send_and_get_reply(message, timeout=_READY_SECONDS))
        except (DBusErrorResponse, OSError):
            return None
        return value

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = {
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.socket}",
            "HOME": str(self.folder),
            "PATH": os.environ["PATH"],
            "XDG_DATA_HOME": str(self.folder / "share"),
            "XDG_RUNTIME_DIR": str(self.folder),
        }
        surroundings = ["env", "-i", *(f"{name}={value}" for name, value in environment.items())]
        return self._stack.enter_context(running([*surroundings, *words], self.folder / f"{words[0]}.log"))


def until(happened: Callable[[], bool]) -> None:
    """Wait until something has happened, or fail."""
    deadline = time.monotonic() + _READY_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@contextmanager
def desktop() -> Iterator[Desktop]:
    """Yield a session bus with no keyring on it yet; everything is ended and removed behind it."""
    for program in ("dbus-daemon", "gnome-keyring-daemon"):
        if shutil.which(program) is None:
            why = f"needs {program}: run scripts/test as root, or install gnome-keyring and dbus"
            (pytest.fail if "CI" in os.environ else pytest.skip)(why)
    # A socket's path is short: a test's own folder may not be.
    folder = Path(tempfile.mkdtemp(prefix="bus-"))
    try:
        with ExitStack() as stack:
            yield Desktop(folder, stack)
    finally:
        shutil.rmtree(folder)
