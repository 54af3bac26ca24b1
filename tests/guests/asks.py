"""Asks for a password, tells the digest of the answer in a record, and the answer itself wherever a text may stand."""

import hashlib
import json
import sys

timeout, ending = sys.argv[1:]
ask = {"type": "INTERACTION", "request_id": "req_7", "kind": "credentials", "message": "Who are you?"}
if timeout:
    ask["timeout_seconds"] = float(timeout)
sys.stdin.readline()
print(json.dumps(ask), flush=True)
answer = json.loads(sys.stdin.readline())
password = answer.get("data", {}).get("password", "")
data = {
    "id": "answer",
    "members": sorted(answer),
    "request_id": answer["request_id"],
    "status": answer["status"],
    "digest": hashlib.sha256(password.encode()).hexdigest(),
}
print(f"I was told {password}", file=sys.stderr)
print(json.dumps({"type": "PROGRESS", "message": f"Signing in with {password}"}))
print(json.dumps({"type": "SKIP_RESULT", "stream": "beta", "reason": "later", "message": f"{password} is too short"}))
gap = {"stream": "beta", "record_key": "b1", "reason": f"{password} failed"}
gap |= {"detail_locator": {"login": password}, "last_error": {"text": f"no {password}"}}
print(json.dumps({"type": "DETAIL_GAP", **gap}))
record = {"stream": "alpha", "key": "answer", "data": data, "emitted_at": "2026-04-01T10:00:00Z"}
print(json.dumps({"type": "RECORD", **record}))
cursor = {"at": 1, "login": [f"me:{password}"]} if ending == "cursor" else {"at": 1}
print(json.dumps({"type": "STATE", "stream": "alpha", "cursor": cursor}))
done = {"type": "DONE", "status": "succeeded" if ending == "cursor" else ending, "records_emitted": 1}
if ending == "failed":
    done["error"] = {"message": f"The password {password} is wrong.", "retryable": False}
print(json.dumps(done))
sys.exit(ending == "failed")
