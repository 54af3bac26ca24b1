"""Tries every way out that it is told of on stdin, a JSON array a line, and says for each what came of it."""

import ctypes
import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path

FAST_OPEN, VSOCK, MPTCP = 0x20000000, 40, 262


def tcp(port):
    socket.create_connection(("127.0.0.1", port), timeout=5).close()


def fast_open(port):
    with socket.socket() as sock:
        sock.sendto(b"out", FAST_OPEN, ("127.0.0.1", port))


def multipath(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as sock:
        sock.connect(("127.0.0.1", port))


def udp(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"out", ("127.0.0.1", port))


def unix(address):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(address.encode())


def abstract(name):
    unix("\0" + name)


def family(number):
    socket.socket(number, socket.SOCK_STREAM).close()


def listen(address):
    with socket.socket() as sock:
        sock.bind((address, 0))
        sock.listen()


def kill(pid):
    os.kill(pid, signal.SIGUSR1)


def attach(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    libc.ptrace(17, pid, 0, 0)


def ring(entries):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, entries, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")


def keys(_):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(250 if os.uname().machine == "x86_64" else 219, 0, -3, 0) < 0:
        raise OSError(ctypes.get_errno(), "keyctl")


WAYS = {
    "read": lambda path: Path(path).read_bytes() or True,
    "list": lambda path: bool(os.listdir(path)),
    "write": lambda path: Path(path).write_text("out") and True,
    "scratch": lambda _: Path(os.environ["TMPDIR"], "x").write_text("kept") and True,
    "spool": lambda _: Path(os.environ["HEADWATER_BLOBS"], "x").write_text("kept") and True,
    "environ": lambda pid: Path(f"/proc/{pid}/environ").read_bytes() and True,
    "core": lambda _: resource.getrlimit(resource.RLIMIT_CORE) == (0, 0),
    "pair": lambda _: [end.close() for end in socket.socketpair()] and True,
    "import": lambda name: __import__(name) and True,
}
WAYS |= {way.__name__: way for way in (tcp, fast_open, multipath, udp, unix, abstract, family, listen)}
WAYS |= {way.__name__: way for way in (kill, attach, ring, keys)}

for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        said = WAYS[name](*arguments)
        print(json.dumps([name, said if isinstance(said, bool) else True]), flush=True)
    except OSError as error:
        print(json.dumps([name, type(error).__name__, str(error)]), flush=True)
