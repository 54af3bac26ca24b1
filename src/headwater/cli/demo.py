"""`headwater demo`: the main job in a minute, with nothing configured; and what a crash does to it."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO

import click

from headwater import clock
from headwater.catalog.folders import BUNDLED
from headwater.catalog.instances import Instance
from headwater.cli.output import Output
from headwater.cli.session import Cli, pass_cli
from headwater.errors import HeadwaterError, refuse
from headwater.host import Host
from headwater.joining.programs import CollectRequest
from headwater.settings import Settings

INSTANCE = "demo/me"
# The first crash comes when this many records are durable; the run has ten times as many.
CRASH_AFTER_RECORDS = 400
CRASH_WAIT_SECONDS = 60.0


@click.command()
@click.option("--crash", is_flag=True, help="Kill Headwater in the middle of it, start again, and count.")
@click.option("--provider", hidden=True, help="Collect from a provider that already runs.")
@pass_cli
def demo(cli: Cli, crash: bool, provider: str | None) -> None:
    """Collect an archive from a provider that starts on this machine.

    Two attachments fail and one is never accounted for, on purpose: see what is kept, what is withheld and why.
    Run it again: only what changed is stored. Exit status: 0.
    """
    if provider is not None:
        _collect(cli.host, cli.output, provider)
    elif crash:
        _crash(cli)
    else:
        rounds = _rounds(cli.host)
        if rounds == 0:
            cli.output.note("A provider starts on this machine; its archive is collected into your own database.")
        with _provider(rounds) as url:
            _collect(cli.host, cli.output, url)


def _collect(host: Host, output: Output, url: str) -> None:
    from headwater.cli.running import report, run

    program = replace(host.program(Instance(INSTANCE)), options={"base_url": url})
    outcome = run(host, output, CollectRequest(program), None)
    gapped = any(tally.gaps for tally in outcome.tallies.values())
    report(output, outcome, INSTANCE, next_command="headwater runs explain" if gapped else "headwater streams list")


def _rounds(host: Host) -> int:
    """Return how often the demo has run here: the provider's archive goes on from there."""
    try:
        with host.reading() as reader:
            return len(reader.runs(INSTANCE, "succeeded", 1000, None)["items"])
    except HeadwaterError:
        return 0


@contextmanager
def _provider(rounds: int) -> Iterator[str]:
    """Run the bundled provider and return its address; it ends with this process."""
    script = BUNDLED / "demo" / "provider.py"
    with subprocess.Popen(
        [sys.executable, str(script), "--round", str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield _address(process.stdout)
        finally:
            process.terminate()


def _address(stdout: IO[bytes] | None) -> str:
    line = stdout.readline() if stdout is not None else b""
    if not line:
        raise refuse("connector_unavailable", "The demo's provider did not start.")
    return str(json.loads(line)["base_url"])


# The crash.


def _crash(cli: Cli) -> None:
    """Kill a collecting Headwater with SIGKILL, start another, and compare what it holds with the provider's."""
    folder = cli.host.settings.state_dir / "demo-crash"
    shutil.rmtree(folder, ignore_errors=True)
    host = Host(Settings(folder / "config.toml", folder / "state"))
    note = cli.output.note
    with _provider(0) as url:
        first = _kill_in_mid_run(host, url)
        note(f"Killed Headwater with SIGKILL when {first:,} records were stored. Starting it again.")
        _collect(host, Output("human") if not cli.output.is_json else _Silent(), url)
        lost, doubled, stored = _compare(host, url)
    result = {"stored_before": first, "stored": stored, "lost": lost, "doubled": doubled}
    cli.output.result(result, lambda: ["", f"{lost} lost, {doubled} doubled, {stored:,} messages stored."])


class _Silent(Output):
    """An output that keeps a run's own result to itself."""

    def __init__(self) -> None:
        super().__init__("json")

    def result(self, value: object, human: object, form: str = "") -> None:
        """Print nothing."""


def _kill_in_mid_run(host: Host, url: str) -> int:
    """Start a Headwater of its own, kill it when some records are durable, and return how many there are."""
    paths = ["--config", str(host.settings.config_path), "--state-dir", str(host.settings.state_dir)]
    words = [sys.executable, "-m", "headwater", *paths, "--output", "json", "demo", "--provider", url]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = clock.monotonic() + CRASH_WAIT_SECONDS
        while (stored := _stored(host)) < CRASH_AFTER_RECORDS and clock.monotonic() < deadline:
            clock.pause(0.01)
        process.send_signal(signal.SIGKILL)
    return stored


def _stored(host: Host) -> int:
    try:
        with host.reading() as reader:
            return sum(row["records"] for row in reader.streams(INSTANCE))
    except HeadwaterError:
        return 0


def _compare(host: Host, url: str) -> tuple[int, int, int]:
    """Return (lost, doubled, stored) messages: lost ones the provider has, doubled ones were written twice."""
    with host.reading() as reader:
        from headwater.store.sqlite.reading import RecordFilter

        stored = [row["key"] for row in reader.every_record(INSTANCE, "messages", RecordFilter())]
        doubled = reader.repeated_versions(INSTANCE, "messages") + len(stored) - len(set(stored))
    return len(_provided(url) - set(stored)), doubled, len(stored)


def _provided(url: str) -> set[str]:
    """Return the ids of every message that the provider has, asked of it directly."""
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    found: set[str] = set()
    after = ""
    while True:
        with opener.open(f"{url}/v1/messages?limit=200&after={after}", timeout=30) as response:
            page = json.load(response)
        found |= {message["id"] for message in page["messages"] if not message.get("deleted")}
        if not page.get("next"):
            return found
        after = page["next"]
