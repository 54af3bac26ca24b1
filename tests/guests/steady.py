"""Two streams of a known truth, a STATE every few records, one line at a time: made to be killed anywhere."""

import json
import sys
import time

RECORDS, STEP = 1_200, 25


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


start = json.loads(sys.stdin.readline())
state = start["state"] or {}
sent = 0
for position in range(RECORDS):
    for stream in ("alpha", "beta"):
        if position < state.get(stream, {}).get("next", 0):
            continue
        key = f"{position:05d}"
        data = {"id": key, "text": f"{stream} {position}"}
        say(type="RECORD", stream=stream, key=key, data=data, emitted_at="2026-11-30T00:00:00Z")
        sent += 1
        if (position + 1) % STEP == 0:
            say(type="STATE", stream=stream, cursor={"next": position + 1})
    if position % 20 == 0:
        time.sleep(0.004)
say(type="DONE", status="succeeded", records_emitted=sent)
