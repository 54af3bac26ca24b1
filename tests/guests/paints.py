"""Sends a few records with times, formulas, and everything that could drive a terminal."""

import json
import sys

RECORDS = {
    "plain": {"text": "one", "n": 1, "at": "2026-04-01T10:00:00Z"},
    "painted": {"text": "\x1b[31mred\x07\x9b2J", "n": 2, "at": "2026-04-02T10:00:00Z"},
    "\x1b]0;title\x07": {"text": "\x1b]52;c;aGk=\x07", "n": 3, "at": "2026-04-03T10:00:00Z"},
    "formula": {"text": "=HYPERLINK(1)", "n": 4, "at": "2026-04-04T10:00:00Z", "more": [1, "é"]},
    "late": {"text": "\u202eevil", "n": 5},
}
EVIL = "\x1b[2J\x07 bad \x9b0m"
sys.stdin.readline()


def say(kind, **members):
    print(json.dumps({"type": kind, **members}))


for key, data in RECORDS.items():
    say("RECORD", stream="alpha", key=key, data={"id": key, **data}, emitted_at="2026-04-05T10:00:00Z")
say("RECORD", stream="alpha", key=EVIL, data={"id": 1}, emitted_at="2026-04-05T10:00:00Z")
say("DETAIL_GAP", stream="beta", reference_only=True, record_key=EVIL, reason=EVIL, retryable=True, status="pending")
say("SKIP_RESULT", stream="beta", reason=EVIL, message=EVIL)
say("STATE", stream="alpha", cursor={"at": EVIL})
print(EVIL, file=sys.stderr)
done = {"status": sys.argv[1], "records_emitted": 6}
if sys.argv[1] == "failed":
    done["error"] = {"message": EVIL, "retryable": True}
say("DONE", **done)
sys.exit(sys.argv[1] == "failed")
