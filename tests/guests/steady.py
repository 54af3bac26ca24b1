"""Three streams of a known truth, a STATE every few records, one line at a time: made to be killed anywhere.

Told `host PID LINE` it kills that process after the line, told `self LINE` itself, told `torn LINE` itself in the midst
of the line; told `stays LINE` it says nothing more.
"""

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

RECORDS, STEP, FILES = 600, 25, 40
how, *rest = sys.argv[1:] or ["unharmed"]
victim, last = (int(rest[0]) if how == "host" else os.getpid()), int(rest[-1]) if rest else 0
told = 0


def say(**message):
    global told
    told += 1
    line = json.dumps(message) + "\n"
    if told == last and how == "torn":
        line = line[: len(line) // 2]
    sys.stdout.write(line)
    sys.stdout.flush()
    if told == last and how == "stays":
        signal.pause()
    if told == last:
        os.kill(victim, signal.SIGKILL)


def spooled(content):
    digest = hashlib.sha256(content).hexdigest()
    (Path(os.environ["HEADWATER_BLOBS"]) / digest).write_bytes(content)
    return {"blob_id": "b", "sha256": digest, "size_bytes": len(content), "mime_type": "text/plain"}


start = json.loads(sys.stdin.readline())
state = start["state"] or {}
sent = 0
for position in range(RECORDS):
    for stream in ("alpha", "beta", "files"):
        if position < state.get(stream, {}).get("next", 0):
            continue
        if stream != "files" or position % FILES == 0:
            key = f"{position:05d}"
            data = {"id": key, "text": f"{stream} {position}"}
            if stream == "files":
                data["blob_ref"] = spooled(data["text"].encode())
            say(type="RECORD", stream=stream, key=key, data=data, emitted_at="2026-11-30T00:00:00Z")
            sent += 1
        if (position + 1) % STEP == 0:
            say(type="STATE", stream=stream, cursor={"next": position + 1})
    if position % 20 == 0:
        time.sleep(0.004)
say(type="DONE", status="succeeded", records_emitted=sent)
