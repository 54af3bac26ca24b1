"""Writes 100 MB to stderr, and does its work."""

import sys

RECORD = '{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}'
sys.stdin.readline()
print(RECORD, flush=True)
for _ in range(100):
    sys.stderr.write("noise\n" * 170_000)
sys.stderr.write("the very end\n")
print('{"type":"STATE","stream":"alpha","cursor":{"at":1}}')
print('{"type":"DONE","status":"failed","records_emitted":1,"error":{"message":"Enough.","retryable":false}}')
sys.exit(1)
