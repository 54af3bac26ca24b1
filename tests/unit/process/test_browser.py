"""A browser for one run: the real one of this machine, or a program in its place that fails as browsers do."""

import asyncio
import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import needs
import pytest
from sites.portal import Portal, serving
from websockets.sync.client import connect

from headwater import limits
from headwater.errors import HeadwaterError
from headwater.process import browser
from headwater.process.browser import AUTOMATION, PROFILE, browsing, find_browser
from headwater.process.confinement.ways import BUBBLEWRAP, NONE, WAYS
from headwater.sdk import Fail

PORTAL = Path(__file__).parents[3] / "examples" / "connectors" / "portal"


def during(
    profile: Path, bindings: Any, use: Any = lambda told: told, *, required: Any = (AUTOMATION,), started: Any = id
) -> Any:
    """Return what `use` makes of the descriptors while the browser runs."""

    spool = profile.parent / "spool"

    async def going() -> Any:
        spool.mkdir(exist_ok=True)
        async with browsing(bindings, frozenset(required), profile, spool, started) as described:
            return await asyncio.to_thread(use, described)

    return asyncio.run(going())


def processes(profile: Path) -> dict[int, int]:
    """Return a pidfd of each process whose command line or environment names the profile."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if str(profile).encode() in told and int(entry.name) != os.getpid():
                found[int(entry.name)] = os.pidfd_open(int(entry.name))
    return found


def is_browser(pid: int) -> bool:
    """Whether a process is the browser itself: none of its children, and nothing that it was started by."""
    told = Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"chrom" in told.split(b"\0")[0] and b"--type=" not in told


def gone(found: dict[int, int]) -> bool:
    """Wait for the end of processes; False where one lives on."""
    return bool(found) and all(select.select([descriptor], [], [], 10)[0] for descriptor in found.values())


def asked(address: str, method: str, **parameters: Any) -> dict[str, Any]:
    """Ask the browser one thing over DevTools."""
    with connect(address, proxy=None) as socket:
        socket.send(json.dumps({"id": 1, "method": method, "params": parameters}))
        return json.loads(socket.recv(10))["result"]


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a script in the place of the browser."""

    def put(script: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "chromium").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "chromium").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        assert find_browser() == str(folder / "chromium")
        return folder

    return put


@needs.browser
@pytest.mark.clause("CP-054")
def test_the_descriptor_leads_to_a_browser(tmp_path):
    """It names the interface, an address that answers, and whether a window could be had."""

    def use(described):
        running = processes(tmp_path / "profile")
        return described, asked(described[AUTOMATION]["ws_url"], "Browser.getVersion"), running

    described, version, running = during(tmp_path / "profile", {AUTOMATION: {}, "network": {}}, use)
    assert described.keys() == {AUTOMATION, "network"}
    assert described["network"] == {}
    assert described[AUTOMATION].keys() == {"interface", "ws_url", "headed_supported"}
    assert described[AUTOMATION]["interface"] == "cdp"
    assert re.fullmatch(r"ws://127\.0\.0\.1:\d+/devtools/browser/[0-9a-f-]{36}", described[AUTOMATION]["ws_url"])
    assert described[AUTOMATION]["headed_supported"] is False
    assert "Chrome" in version["product"]
    assert gone(running)


@needs.browser
def test_only_this_machine_can_reach_the_browser(tmp_path):
    """Every port that its processes listen at is one of loopback."""

    def use(_):
        names = {
            os.readlink(descriptor)
            for number in processes(tmp_path / "profile")
            for descriptor in Path(f"/proc/{number}/fd").iterdir()
        }
        tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
        rows = [row.split() for table in tables for row in table]
        return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in names]

    listening = during(tmp_path / "profile", {AUTOMATION: {}}, use)
    assert [address.split(":")[0] for address in listening] == ["0100007F"]


@needs.browser
def test_a_browser_goes_straight_to_the_site_and_nowhere_else(tmp_path, instead):
    """No proxy of the environment is used, and no call home is made: so says Chromium's own log of its network."""
    log, resolves = tmp_path / "profile" / "net.json", "MAP portal.example 127.0.0.1"
    proxy = "http_proxy=http://127.0.0.1:9"  # nobody listens there
    instead(f'{proxy} exec {find_browser()} "$@" --log-net-log={log} --host-resolver-rules="{resolves}"')
    with serving(Portal("ada", "", "")) as portal:
        url = portal.address.replace("127.0.0.1", "portal.example")

        def use(described):
            asked(described[AUTOMATION]["ws_url"], "Target.createTarget", url=f"{url}/login")
            return portal.was_asked("GET /login")

        assert during(tmp_path / "profile", {AUTOMATION: {}}, use)
    params = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    told = {each[name] for each in params for name in ("url", "host") if name in each}
    assert {re.sub(r"^[a-z]+://|[:/?].*$", "", text) for text in told} == {"127.0.0.1", "portal.example"}


HELD_WAYS = [way for way in WAYS if "filesystem" in way.holds]


@needs.browser
@pytest.mark.parametrize("way", HELD_WAYS if os.geteuid() == 0 else [BUBBLEWRAP], ids=lambda way: way.name)
def test_a_browser_reads_no_file_but_its_own(tmp_path, monkeypatch, way):
    """Who drives it could have it show any file of the owner's; what it downloads lies in the spool of its run."""
    if way.lacking() and "CI" not in os.environ:
        pytest.skip(way.lacking())
    monkeypatch.setattr(browser, "chosen", lambda *_: way)
    monkeypatch.syspath_prepend(PORTAL)
    opened = importlib.import_module("page").opened
    (tmp_path / "spool").mkdir()
    for place in (tmp_path, tmp_path / "spool"):
        (place / "page.html").write_text("what is in a file")

    started = []

    def use(described):
        with opened(described[AUTOMATION]["ws_url"]) as page:
            page.open(f"file://{tmp_path}/spool/page.html")
            assert page.look("document.body.innerText") == "what is in a file"
            with pytest.raises(Fail, match="cannot be reached"):
                page.open(f"file://{tmp_path}/page.html")

    during(tmp_path / "profile", {AUTOMATION: {}}, use, started=started.append)
    assert [(each.is_sandboxed, each.is_confined) for each in started] == [(os.geteuid() != 0, True)]


@needs.browser
@pytest.mark.parametrize("user", [0, 1000])
def test_a_browser_that_nothing_holds_is_told_of(tmp_path, monkeypatch, instead, user):
    """As root without a sandbox; and as anybody else never without one, nor in a confinement that would end it."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    asked_for = []
    monkeypatch.setattr(browser, "chosen", lambda _place, _confinement, ways: asked_for.append(ways) or NONE)
    instead("""printf "%s\\n" "$@" > words; printf "9\\n/x" > DevToolsActivePort; read -r _ <&3""")
    started = []
    during(tmp_path / "profile", {AUTOMATION: {}}, started=started.append)
    assert [(each.is_sandboxed, each.is_confined) for each in started] == [(user != 0, False)]
    assert ("--no-sandbox" in (tmp_path / "profile" / "words").read_text().split()) is (user == 0)
    assert ([way for way in HELD_WAYS if way in asked_for[0]] == HELD_WAYS) is (user == 0)
    assert BUBBLEWRAP in asked_for[0]


@pytest.mark.clause("CP-055")
def test_a_profile_is_a_folder_of_the_owner_s_that_stays(tmp_path, instead):
    """It is made where it is asked for, can be entered by its owner only, and no browser starts for it."""
    instead("touch started")
    profile = tmp_path / "state" / "profile"
    profile.parent.mkdir()
    described = during(profile, {PROFILE: {}})
    assert described == {PROFILE: {"profile_path": str(profile)}}
    assert profile.stat().st_mode & 0o777 == 0o700
    (profile / "cookie").write_text("kept")
    assert (Path(during(profile, {PROFILE: {}})[PROFILE]["profile_path"]) / "cookie").read_text() == "kept"
    assert [path.name for path in profile.iterdir()] == ["cookie"]


def test_nothing_starts_and_nothing_is_made_for_a_run_without_a_browser(tmp_path, instead):
    """A run that asks for neither binding does not pay for them."""
    instead("touch started")
    assert during(tmp_path / "profile", {"network": {}}) == {"network": {}}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bin", "chromium", "spool"]


@pytest.mark.clause("CP-050")
def test_a_browser_that_ends_at_once_is_named_and_what_it_says_is_not_passed_on(tmp_path, instead):
    """Where it is required, the run is refused; stderr of a browser may hold addresses."""
    instead("echo https://portal.example/?token=s3cret >&2; exit 3")
    with pytest.raises(HeadwaterError) as caught:
        during(tmp_path / "profile", {AUTOMATION: {}})
    assert caught.value.code == "binding_unavailable"
    assert AUTOMATION in caught.value.message
    assert "s3cret" not in str(vars(caught.value))


@pytest.mark.clause("CP-052")
def test_a_browser_that_is_only_wished_for_is_left_out_where_it_does_not_start(tmp_path, instead):
    """The run goes on, and START has no such binding."""
    instead("exit 3")
    assert during(tmp_path / "profile", {AUTOMATION: {}, "network": {}}, required=()) == {"network": {}}


def test_a_browser_has_a_deadline_to_start(tmp_path, instead, monkeypatch):
    """One that hangs is ended with all that it started."""
    monkeypatch.setattr(limits, "BROWSER_START_SECONDS", 0.3)
    monkeypatch.setattr(limits, "STOP_SECONDS", 0.1)
    instead("touch started; sleep 600 & sleep 600")
    with pytest.raises(HeadwaterError, match="did not start within"):
        during(tmp_path / "profile", {AUTOMATION: {}})
    assert (tmp_path / "profile" / "started").exists()
    left = processes(tmp_path / "profile")
    assert not left or gone(left)


def test_no_place_for_temporary_files_refuses_the_binding(tmp_path, instead, monkeypatch):
    """A full or missing `/tmp` is told in a sentence."""
    instead("touch started")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(HeadwaterError, match="temporary files"):
        during(tmp_path / "profile", {AUTOMATION: {}})


def test_the_address_of_an_earlier_browser_is_not_taken_for_this_one_s(tmp_path, instead):
    """A file that a killed browser left behind leads nowhere."""
    instead("exit 3")
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "DevToolsActivePort").write_text("9\n/devtools/browser/old")
    assert during(tmp_path / "profile", {AUTOMATION: {}}, required=()) == {}


HOLDS = """
import asyncio, sys
from pathlib import Path
from headwater.process import browser
from headwater.process.browser import AUTOMATION, browsing

async def main():
    async with browsing({AUTOMATION: {}}, frozenset({AUTOMATION}), Path(sys.argv[1]), Path(sys.argv[2])) as described:
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@needs.browser
@pytest.mark.parametrize("way", ["by the kernel", "by its pipe"])
def test_a_browser_goes_when_its_host_is_killed(tmp_path, way):
    """With `setpriv` at once, and without it as soon as the pipe ends; the profile opens again."""
    path = os.environ["PATH"]
    if way == "by its pipe":
        path = str(tmp_path / "bin")
        Path(path).mkdir()
        for name in ("sh", "chromium", "uname", "grep", "mktemp", "ls", "tr", "cut", "dirname", "readlink", "cat"):
            found = find_browser() if name == "chromium" else f"/bin/{name}"
            if found and Path(found).exists():
                (Path(path) / name).symlink_to(found)
    words = [sys.executable, "-c", HOLDS, str(tmp_path / "profile"), str(tmp_path)]
    host = subprocess.Popen(words, stdout=subprocess.PIPE, env={"PATH": path, "HOME": str(tmp_path)})
    try:
        assert host.stdout is not None
        assert host.stdout.readline() == b"ready\n"
        running = {pid: fd for pid, fd in processes(tmp_path / "profile").items() if pid != host.pid}
        assert len(running) > 1
    finally:
        host.kill()
        host.communicate()
    assert gone(running)
    assert AUTOMATION in during(tmp_path / "profile", {AUTOMATION: {}})


@needs.browser
def test_a_browser_that_crashes_leaves_no_memory_behind(tmp_path):
    """Neither a core file nor a crash report: they would hold what was typed."""
    profile = tmp_path / "profile"

    def use(described):
        running = processes(profile)
        (main,) = (pid for pid in running if is_browser(pid))
        assert re.search(r"Max core file size +0 +0 ", Path(f"/proc/{main}/limits").read_text())
        os.kill(main, signal.SIGSEGV)
        assert gone(running)

    during(profile, {AUTOMATION: {}}, use)
    left = [path.name for path in tmp_path.rglob("*")]
    assert "Local State" in left
    assert [name for name in left if name.endswith(".dmp") or name.startswith("core") or "Crash" in name] == []


@needs.browser
def test_a_profile_that_came_from_another_machine_opens(tmp_path):
    """A killed browser's mark names the machine, and a container has another name each time."""
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "SingletonLock").symlink_to("another-machine-1")
    assert AUTOMATION in during(profile, {AUTOMATION: {}})


@needs.browser
def test_what_a_profile_prefers_is_kept_beside_what_it_must(tmp_path):
    """Forms are not remembered, whatever was set before; anything else stays."""
    path = tmp_path / "profile" / "Default" / "Preferences"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"autofill": {"profile_enabled": True}, "intl": {"accept_languages": "cy"}}))
    during(tmp_path / "profile", {AUTOMATION: {}})
    kept = json.loads(path.read_text())
    assert (kept["autofill"]["profile_enabled"], kept["credentials_enable_service"]) == (False, False)
    assert kept["intl"]["accept_languages"] == "cy"
