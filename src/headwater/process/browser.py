"""A Chromium for one run: without a window, on loopback, in a profile that its instance keeps.

The binding `browser_automation` is its DevTools address (Chrome DevTools Protocol, WebSocket); `browser_profile` is
the profile's folder. Chromium reads the pipe on its stdin as a second DevTools client, and leaves when that ends: so
it goes with the host however the host goes, and has written its cookies when it was asked to.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.process.child import Child
from headwater.process.confinement.boundary import Confinement
from headwater.process.confinement.view import program_paths
from headwater.process.confinement.ways import BUBBLEWRAP, NONE, SECCOMP, WAYS, Way, chosen, enclosing
from headwater.process.environment import child_environment
from headwater.process.profile import PORT_FILE, made, prepare

AUTOMATION: Final = "browser_automation"
PROFILE: Final = "browser_profile"

PROGRAMS: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)

# Asked of the machine's owner by nobody: hints, the time, offers, casting, translation.
_OFF: Final = (
    "AimEnabled",
    "AimServerEligibilityEnabled",
    "AutofillServerCommunication",
    "DialMediaRouteProvider",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationGuideModelDownloading",
    "OptimizationHints",
    "OptimizationTargetPrediction",
    "PreconnectToSearch",
    "PreconnectToSearchDesktop",
    "Translate",
)
# A port that Chromium never connects to, for what it has no other way to leave alone.
_NOWHERE: Final = "https://127.0.0.1:1"

# No window, an address on loopback at a free port, and nothing done but what it is told.
_FLAGS: Final = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--remote-debugging-pipe",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    f"--disable-features={','.join(_OFF)}",
    "--disable-sync",
    f"--disk-cache-size={limits.BROWSER_CACHE_BYTES}",
    f"--gaia-url={_NOWHERE}",
    f"--gcm-checkin-url={_NOWHERE}",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--no-proxy-server",
    "--password-store=basic",
    "--use-mock-keychain",
)

# The DevTools pipe is read from descriptor 3 and written to 4: nobody asks anything there, its end is what counts.
_SHELL: Final = 'ulimit -c 0; exec "$@" 3<&0 4>/dev/null </dev/null >/dev/null'

# Chromium keeps the crash reports of itself and its pages below XDG_CONFIG_HOME; here they can be kept nowhere.
_NO_CRASH_REPORTS: Final = os.devnull

# What a browser reads beside the system: what its administrator has set, as the certificates and policies of a company.
_SETTINGS: Final = tuple(Path("/etc", name) for name in ("chromium", "chromium.d", "chromium-browser", "opt/chrome"))
# A sandbox of Chromium's own makes namespaces and mounts, and Landlock refuses it those.
_BESIDE_A_SANDBOX: Final = (BUBBLEWRAP, SECCOMP, NONE)
_SHARED_MEMORY: Final = (Path("/dev/shm"),)  # noqa: S108 - its processes share their pages there


def find_browser() -> str | None:
    """Return the program of the first browser that this machine has, None where it has none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def is_sandboxed() -> bool:
    """Whether a browser has a sandbox of its own: Chromium has none for root."""
    return os.geteuid() != 0


@dataclass(frozen=True)
class Browser:
    """A browser that runs: the address of its DevTools, and what holds it.

    It has a sandbox of its own, except as root, and where one works a confinement that keeps it from the owner's files.
    """

    address: str
    is_sandboxed: bool
    is_confined: bool


def _unnoticed(_browser: Browser) -> None:
    """Take no notice."""


@asynccontextmanager
async def browsing(
    bindings: Mapping[str, dict[str, Any]],
    required: frozenset[str],
    profile: Path,
    spool: Path,
    started: Callable[[Browser], None] = _unnoticed,
) -> AsyncIterator[dict[str, dict[str, Any]]]:
    """Have a run's browser run, and give the bindings their descriptors. Nothing starts unless a binding asks for it.

    `profile` is the instance's folder, made where it is asked for; its instance's lock must be held. `spool` is the
    run's, where the browser may leave what it downloads. Where the browser does not start, raise `binding_unavailable`
    if it is required, and leave the binding out if it is not (CP-052).
    """
    described = dict(bindings)
    if PROFILE in described:
        described[PROFILE] = {"profile_path": str(made(profile))}
    async with AsyncExitStack() as stack:
        if AUTOMATION in described:
            try:
                running = await stack.enter_async_context(browser(profile, spool))
                described[AUTOMATION] = {"interface": "cdp", "ws_url": running.address, "headed_supported": False}
                started(running)
            except HeadwaterError:
                if AUTOMATION in required:
                    raise
                del described[AUTOMATION]
        yield described


@asynccontextmanager
async def browser(profile: Path, spool: Path) -> AsyncIterator[Browser]:
    """Start a browser, and end it and all it started afterwards.

    Raise `binding_unavailable` where there is none, it ends, or it gives no address in `limits.BROWSER_START_SECONDS`.
    """
    program = find_browser()
    if program is None:
        raise _unavailable("This machine has no Chromium.")
    profile = made(profile)
    prepare(profile)
    with _scratch() as scratch:
        confinement = _confinement(program, profile, spool, scratch)
        sandboxed = is_sandboxed()
        way = await asyncio.to_thread(chosen, profile, confinement, _BESIDE_A_SANDBOX if sandboxed else WAYS)
        child = await _started(program, profile, confinement, way, [] if sandboxed else ["--no-sandbox"])
        try:
            address = await _address(child, profile / PORT_FILE)
            yield Browser(address, sandboxed, "filesystem" in way.holds)
        finally:
            await child.close_input()
            await child.wait(limits.STOP_SECONDS)
            await child.stop()


@contextmanager
def _scratch() -> Iterator[Path]:
    """Make a folder for temporary files; its path is short, since Chromium has a socket in it."""
    try:
        folder = TemporaryDirectory(prefix="headwater-browser-", ignore_cleanup_errors=True)
        Path(folder.name, "tmp").mkdir()
    except OSError as error:
        raise _unavailable("There is no place for the browser's temporary files.") from error
    with folder as path:
        yield Path(path).resolve()


def _confinement(program: str, profile: Path, spool: Path, scratch: Path) -> Confinement:
    """Hold the browser to its profile: who drives it could have it read and write any file of the owner's."""
    readable = [*program_paths(Path(program), Path.home().resolve()), *_SETTINGS]
    return Confinement(
        scratch,
        network=True,
        local_sockets=True,
        readable=tuple(dict.fromkeys(path.resolve() for path in readable if path.exists())),
        writable=(profile, spool.resolve(), *(path for path in _SHARED_MEMORY if path.is_dir())),
    )


async def _started(program: str, profile: Path, confinement: Confinement, way: Way, more: Sequence[str]) -> Child:
    words = ["/bin/sh", "-c", _SHELL, "sh", program, *_FLAGS, *more, f"--user-data-dir={profile}", "about:blank"]
    folders = {"HOME": str(profile), "TMPDIR": str(confinement.spool), "XDG_CONFIG_HOME": _NO_CRASH_REPORTS}
    with enclosing(way, words, profile, confinement) as enclosed:
        return await Child.spawn(
            enclosed.command,
            folder=profile,
            environment=child_environment(folders),
            descriptors=enclosed.descriptors,
            told=enclosed.told,
        )


async def _address(child: Child, port_file: Path) -> str:
    """Wait for the file in which Chromium says where it listens: a port, and a path that cannot be guessed."""
    try:
        async with asyncio.timeout(limits.BROWSER_START_SECONDS):
            while await child.wait(limits.BROWSER_LOOK_SECONDS) is None:
                with suppress(FileNotFoundError, ValueError):
                    port, path = port_file.read_text().split()
                    return f"ws://127.0.0.1:{port}{path}"
    except TimeoutError:
        raise _unavailable(f"Chromium did not start within {limits.BROWSER_START_SECONDS:g} seconds.") from None
    raise _unavailable("Chromium ended before it could be driven.")


def _unavailable(message: str) -> HeadwaterError:
    message = f"{message} The connector needs {AUTOMATION}."
    return refuse("binding_unavailable", message, safe="The connector was not started.", bindings=[AUTOMATION])
