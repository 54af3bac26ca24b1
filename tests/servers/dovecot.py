"""A Dovecot of the tests' own: ports on loopback, a certificate by a CA of its own, all users with one password."""

import contextlib
import getpass
import imaplib
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers.certificates import certify
from servers.running import free_port, running

PASSWORD = "correct-horse-battery-staple"

_CONFIGURATION = """
protocols = imap
base_dir = {place}/run
state_dir = {place}/state
log_path = {place}/log
ssl = yes
ssl_cert = <{place}/server.pem
ssl_key = <{place}/server.key
disable_plaintext_auth = {tls_only}
default_internal_user = {internal}
default_login_user = {login}
default_internal_group = {internal_group}
first_valid_uid = 1
mail_location = {mail}
mail_fsync = never
mailbox_list_index = no
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    special_use = \\Sent
  }}
}}
passdb {{
  driver = static
  args = password={{PLAIN}}{password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={place}/home/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    address = 127.0.0.1
    port = {port}
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service imap {{
  process_limit = 20
}}
service stats {{
  chroot =
}}
protocol imap {{
  mail_max_userip_connections = 100
}}
imap_logout_format = bytes in=%i out=%o
{more}
"""


@dataclass(frozen=True)
class Dovecot:
    """Where a server listens, and how it is looked into."""

    place: Path
    port: int
    tls_port: int

    @property
    def ca(self) -> str:
        """The certificate that clients must trust."""
        return (self.place / "ca.pem").read_text()

    @contextlib.contextmanager
    def client(self, user: str) -> Iterator[imaplib.IMAP4_SSL]:
        """Log in as a user, with a client of the standard library."""
        context = ssl.create_default_context(cadata=self.ca)
        with imaplib.IMAP4_SSL("127.0.0.1", self.tls_port, ssl_context=context, timeout=20) as client:
            client.login(user, PASSWORD)
            yield client

    def home(self, user: str) -> Path:
        """Return the folder of a user, which the server may write to."""
        return self.place / "home" / user

    def doveadm(self, *words: str) -> str:
        """Do as the server's administrator."""
        command = [_program("doveadm"), "-c", str(self.place / "dovecot.conf"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout

    def sent_bytes(self, user: str, sessions: int) -> list[int]:
        """Wait until so many sessions of a user have ended; return how many bytes the server sent in each."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            log = (self.place / "log").read_text("utf-8", "replace")
            found = re.findall(rf"imap\({re.escape(user)}\).*out=(\d+)", log)
            if len(found) >= sessions:
                return [int(number) for number in found]
            time.sleep(0.02)
        raise TimeoutError(f"{user} has not had {sessions} sessions")


def _program(name: str) -> str:
    """Find a program of Dovecot's; skip the test that asks where there is none. In CI that is a failure."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if path is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Dovecot: apt-get install dovecot-imapd")
    return path


@contextlib.contextmanager
def dovecot(*, mail: str = "maildir:~/Maildir", plain: bool = False, more: str = "") -> Iterator[Dovecot]:
    """Run a server for the block. `plain` lets people log in without TLS; `more` is configuration of the test's own."""
    program = _program("dovecot")
    place = Path(tempfile.mkdtemp(prefix="dovecot-"))
    server = Dovecot(place, free_port(), free_port())
    try:
        place.chmod(0o755)
        certify(place)
        _configure(server, mail=mail, plain=plain, more=more)
        with running([program, "-F", "-c", place / "dovecot.conf"], place / "stderr") as process:
            _await(server, process)
            yield server
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _configure(server: Dovecot, *, mail: str, plain: bool, more: str) -> None:
    place, rooted = server.place, os.geteuid() == 0
    owner = pwd.getpwnam("nobody") if rooted else pwd.getpwuid(os.geteuid())
    home = place / "home"
    home.mkdir()
    os.chown(home, owner.pw_uid, owner.pw_gid)
    me = getpass.getuser()
    text = _CONFIGURATION.format(
        place=place,
        tls_only="no" if plain else "yes",
        internal="dovecot" if rooted else me,
        internal_group="dovecot" if rooted else owner.pw_gid,
        login="dovenull" if rooted else me,
        mail=mail,
        password=PASSWORD,
        uid=owner.pw_uid,
        gid=owner.pw_gid,
        port=server.port,
        tls_port=server.tls_port,
        more=more,
    )
    (place / "dovecot.conf").write_text(text)


def _await(server: Dovecot, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError((server.place / "stderr").read_text())
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.tls_port), 1):
            return
        time.sleep(0.02)
    raise TimeoutError("Dovecot does not listen")
