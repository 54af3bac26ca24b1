"""Fills the pipe before it reads START."""

import json
import sys

COUNT = 50_000
for n in range(COUNT):
    record = {"stream": "alpha", "key": f"a{n}", "data": {"id": f"a{n}"}, "emitted_at": "2026-04-01T10:00:00Z"}
    print(json.dumps({"type": "RECORD", **record}))
sys.stdin.readline()
print(json.dumps({"type": "DONE", "status": "succeeded", "records_emitted": COUNT}))
