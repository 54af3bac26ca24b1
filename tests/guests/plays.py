"""Plays a script of lines and exits as told; where it has last words, it waits to be asked to leave and says them."""

import json
import signal
import sys
from pathlib import Path

script = json.loads(Path(sys.argv[1]).read_text())


def leave(*_):
    sys.stdout.write("".join(f"{line}\n" for line in script.get("last_words", [])))
    sys.stdout.flush()
    sys.exit(script["exit"])


signal.signal(signal.SIGTERM, leave)
start = sys.stdin.readline()
Path(sys.argv[2]).write_text(start)
sys.stdout.write("".join(f"{line}\n" for line in script["lines"]))
sys.stdout.flush()
if "last_words" in script:
    signal.pause()
sys.exit(script["exit"])
