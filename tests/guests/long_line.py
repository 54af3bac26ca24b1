"""Sends a line of 64 MB."""

import sys

RECORD = '{"type":"RECORD","stream":"alpha","key":"%s","data":{"id":"%s"},"emitted_at":"2026-04-01T10:00:00Z"}'
sys.stdin.readline()
print(RECORD % ("a1", "a1"))
print('{"type":"STATE","stream":"alpha","cursor":{"at":1}}', flush=True)
for _ in range(64):
    sys.stdout.write("x" * 1_000_000)
print('\n{"type":"DONE","status":"succeeded","records_emitted":2}')
