"""The way to the owner of a state directory: found, started where that is asked for, and told apart by its build.

Both sides check by the kernel that the other one is the same user. A question goes to an owner of this very build or
to none: another one may mean something else by it (CLI-824).
"""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from headwater import clock, limits
from headwater.errors import HeadwaterError, refuse
from headwater.link.unix import Unanswered, Unreached, put, put_for

VERSION: Final = "headwater-owner/1"
Want = Literal["greet", "status", "stop", "sign_in", "describe", "operate", "token", "launch", "copy", "shutdown"]


class Place(NamedTuple):
    """Where the owner of a state directory is: the lock it holds for its life, and the socket it answers at."""

    lock: Path
    socket: Path

    @classmethod
    def of(cls, state_dir: Path) -> "Place":
        """Return the place in a state directory."""
        return cls(state_dir / "owner.lock", state_dir / "owner.sock")


@cache
def build() -> str:
    """Return what tells this program from another build of it: its files' sizes and times, and its interpreter."""
    package = Path(__file__).parents[1]
    files = sorted((str(path), path.stat()) for path in package.rglob("*.py"))
    told = [sys.version, *(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in files)]
    return sha256("\n".join(told).encode()).hexdigest()


def is_held(place: Place) -> bool:
    """Whether an owner holds the lifetime lock; it is not waited for."""
    try:
        descriptor = os.open(place.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise _foreign() from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def check_ours(place: Place) -> None:
    """Raise `forbidden` where the state directory, its lock or its socket is not only the user's (CLI-114)."""
    for path in (place.lock.parent, place.lock, place.socket):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _foreign() from error
        others_write = path == place.lock.parent and status.st_mode & 0o022
        if status.st_uid != os.geteuid() or stat.S_ISLNK(status.st_mode) or others_write:
            raise _foreign()


def ask(place: Place, want: Want, seconds: float = limits.LINK_SECONDS, **members: Any) -> dict[str, Any]:
    """Ask the running owner, and return what it tells. Raise what it refuses, as it does.

    `unavailable` where none runs, `owner_build_mismatch` where it is of another build, `outcome_unknown` where its
    answer never came.
    """
    return ask_for(place, want, seconds, 0, **members)[0]


def ask_for(
    place: Place, want: Want, seconds: float, at_most: int, answer_bytes: int = limits.LINK_BYTES, **members: Any
) -> tuple[dict[str, Any], list[int]]:
    """Ask as `ask` does, and return what it tells with the descriptors that it hands over, which the caller closes."""
    try:
        question = {"version": VERSION, "build": build(), "want": want, **members}
        told, descriptors = put_for(place.socket, question, seconds, at_most, answer_bytes)
    except Unreached:
        raise refuse("unavailable", "The owner of this state directory is not running.", stage="readiness") from None
    except Unanswered:
        raise refuse("outcome_unknown", "The owner's answer never came; it may have done what it was asked.") from None
    if "refused" in told:
        raise _refused(told["refused"])
    return dict(told.get("result", {})), descriptors


def started(place: Place, config_path: Path) -> None:
    """Have an owner that answers: the one that runs, or a new one. Raise `unavailable` where none becomes ready.

    Two that are started at once meet at the lifetime lock; one of them serves.
    """
    if _answers(place):
        return
    check_ours(place)
    words = [sys.executable, "-m", "headwater", "--config", str(config_path), "--state-dir", str(place.lock.parent)]
    child = subprocess.Popen(
        [*words, "owner", "--detached"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_surroundings(os.environ),
        cwd="/",
        start_new_session=True,
    )
    until = clock.monotonic() + limits.OWNER_START_SECONDS
    while clock.monotonic() < until:
        if _answers(place):
            return
        if child.poll() not in (None, 0) and not is_held(place):
            break
        clock.pause(limits.OWNER_LOOK_SECONDS)
    message = "An owner runs, and does not answer." if is_held(place) else "The owner could not be started."
    raise refuse("unavailable", message, stage="readiness", next_action="retry_explicitly")


def stop(place: Place) -> Literal["stopped", "not_running"]:
    """Ask the owner to end, and wait for that. No process is signalled (CLI-114 to CLI-118)."""
    check_ours(place)
    if not is_held(place):
        return "not_running"
    try:
        put(place.socket, {"version": VERSION, "want": "shutdown"}, limits.LINK_SECONDS)
    except (Unreached, Unanswered):
        if not is_held(place):
            return "stopped"
        message = "Somebody holds the owner's lock, and nobody answers."
        raise refuse("unavailable", message, stage="stop", next_action="retry_explicitly") from None
    until = clock.monotonic() + limits.OWNER_STOP_SECONDS
    while is_held(place):
        if clock.monotonic() >= until:
            raise refuse("timeout", "The owner is still ending.", stage="stop", next_action="retry_explicitly")
        clock.pause(limits.OWNER_LOOK_SECONDS)
    return "stopped"


def _answers(place: Place) -> bool:
    """Whether an owner of this build answers. Raise `owner_build_mismatch` for one of another build."""
    try:
        ask(place, "greet")
    except HeadwaterError as error:
        if error.code in ("unavailable", "outcome_unknown"):
            return False
        raise
    return True


def _surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what an owner gets of the environment: nothing that could hold a secret or lead it astray."""
    kept = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "PYTHONPATH",
    )
    return {name: environment[name] for name in kept if name in environment}


def _refused(told: Mapping[str, Any]) -> HeadwaterError:
    """Return the refusal of an owner as it was raised there."""
    shown = {name: told[name] for name in ("stage", "next_action", "safe", "command")}
    return refuse(told["code"], told["message"], **shown, **told["data"])


def _foreign() -> HeadwaterError:
    message = "The state directory, or the owner's lock or socket in it, is not yours alone to change."
    return refuse("forbidden", message, stage="stop", next_action="check_configuration")
