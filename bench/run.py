#!/usr/bin/env python3
"""Time Headwater end to end against the floor, in turn, in one run.

    bench/run.py [--n 200000] [--rounds 5] [--profile big small] [--search] [--memory]

Both do the same work on the same messages: a connector process that prints them, decoding, the check for
repeated members, scope, key identity, JSON Schema, point read, upsert with history, checkpoint; WAL and
synchronous=FULL. `floor.py` does it in one process with nothing else. Only ratios mean anything: medians over
rounds of floor, ours, floor, ours. With --search both keep a full-text index of the same fields, too.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import gen

HERE = pathlib.Path(__file__).parent
CONNECTOR = HERE / "cat_connector.sh"
SEARCHED = {"big": ["text", "status"], "small": ["title"]}


def command(
    name: str, data: pathlib.Path, part: int, state: pathlib.Path, searched: list[str]
) -> tuple[list[str], dict[str, str]]:
    lines = data / f"p{part}.pdpp.jsonl"
    if name == "floor":
        environment = {"DATA": str(lines), "SCHEMA": str(data / "schema.json"), "STATE": str(state)}
        return [sys.executable, str(HERE / "floor.py"), "one", *(["--fts"] if searched else [])], environment
    manifest = state / "manifest.json"
    stream = {"name": "items", "primary_key": ["id"], "incremental": True}
    if searched:
        stream |= {"semantics": "mutable_state", "query": {"search": {"lexical_fields": searched}}}
    stream["schema"] = json.loads((data / "schema.json").read_text())
    manifest.write_text(json.dumps({"connector_id": "https://bench.example/items", "streams": [stream]}))
    where = ["--config", str(state / "config.toml"), "--state-dir", str(state / "state"), "--output", "json"]
    words = [sys.executable, "-m", "headwater", *where, "collect", "--manifest", str(manifest)]
    return [*words, "--", "sh", str(CONNECTOR), str(lines)], {}


def timed(words: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Return (wall seconds, CPU seconds, peak MB of the largest process) of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    process = subprocess.Popen(words, env={**os.environ, **environment}, stdout=subprocess.PIPE)
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    if status or not printed:
        sys.exit(f"failed: {words}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, usage.ru_maxrss / 1024


def compare(profile: str, n: int, rounds: int, root: str, search: bool) -> list[str]:
    data = gen.generate(n, profile, root)
    searched = SEARCHED[profile] if search else []
    figures: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for _ in range(rounds):
        for name in ("floor", "headwater"):
            state = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=root))
            for part in (1, 2):
                figures.setdefault((name, part), []).append(timed(*command(name, data, part, state, searched)))
            shutil.rmtree(state)
    rows = []
    for part in (1, 2):
        floor, ours = figures["floor", part], figures["headwater", part]
        wall = statistics.median(f[0] / o[0] for f, o in zip(floor, ours, strict=True))
        cpu = statistics.median(f[1] / o[1] for f, o in zip(floor, ours, strict=True))
        each = statistics.median(o[1] for o in ours) / n * 1e6
        rate = n / statistics.median(o[0] for o in ours)
        peak = max(o[2] for o in ours)
        row = f"| {profile} | {part} | {wall:.2f} | {cpu:.2f} | {each:.1f} | {rate:,.0f} | {peak:.0f} |"
        rows.append(row)
        sys.stdout.write(row + "\n")
        sys.stdout.flush()
    return rows


def memory(root: str) -> None:
    """Print the peak of the host at 100,000 and at 1,000,000 small records."""
    peaks = {}
    for n in (100_000, 1_000_000):
        data = gen.generate(n, "small", root)
        state = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=root))
        peaks[n] = timed(*command("headwater", data, 1, state, []))[2]
        shutil.rmtree(state)
        sys.stdout.write(f"{n:>9,} small records: peak {peaks[n]:.0f} MB\n")
    sys.stdout.write(f"ratio {peaks[1_000_000] / peaks[100_000]:.2f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", nargs="+", default=["big", "small"])
    parser.add_argument("--root", default=tempfile.gettempdir() + "/benchdata")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    if options.memory:
        memory(options.root)
        return
    sys.stdout.write(
        "| records | pass | wall, floor / ours | CPU, floor / ours | CPU µs a record | records/s | peak MB |\n"
    )
    sys.stdout.write("|---|--:|--:|--:|--:|--:|--:|\n")
    for profile in options.profile:
        compare(profile, options.n, options.rounds, options.root, options.search)


if __name__ == "__main__":
    main()
