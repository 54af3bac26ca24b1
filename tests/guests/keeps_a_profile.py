"""Sends what the run before left in the browser profile, and leaves its own id there."""

import json
import sys
from pathlib import Path

start = json.loads(sys.stdin.readline())
kept = Path(start["bindings"]["browser_profile"]["profile_path"]) / "kept"
text = kept.read_text() if kept.exists() else "nothing"
kept.write_text(start["run_id"])
record = {"type": "RECORD", "stream": "alpha", "key": start["run_id"], "emitted_at": "2026-01-01T00:00:00Z"}
bindings = sorted(start["bindings"])
print(json.dumps({**record, "data": {"id": start["run_id"], "text": text, "bindings": bindings}}))
print('{"type":"DONE","status":"succeeded","records_emitted":1}', flush=True)
sys.stdin.read()
