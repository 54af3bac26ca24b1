"""Speaks as the public reference connectors do: asks for help, asks for gaps, and waits for the end of its input."""

import json
import sys


def say(kind: str, **members: object) -> None:
    print(json.dumps({"type": kind, **members}), flush=True)


start = json.loads(sys.stdin.readline())
print(f"detail_gaps {start.get('detail_gaps', 'absent')}", file=sys.stderr)
say("ASSISTANCE", message="Approve the sign-in on your phone", assistance_request_id="a1", owner_action="act_elsewhere")
say("ASSISTANCE_STATUS", assistance_request_id="a1", status="resolved")
say("DETAIL_GAPS_PAGE_REQUEST", reference_only=True, request_id="p1")
page = json.loads(sys.stdin.readline())
assert (page["type"], page["request_id"], page["detail_gaps"]) == ("DETAIL_GAPS_PAGE_RESPONSE", "p1", [])
say("RECORD", stream="alpha", key="1", data={"id": "1"}, emitted_at="2026-01-02T03:04:05Z")
say("STATE", stream="alpha", cursor={"n": 1})
say("DONE", status="succeeded", records_emitted=1)
sys.stdin.read()
