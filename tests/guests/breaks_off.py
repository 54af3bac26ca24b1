"""Asks a question, and does not wait for the answer: it speaks, floods or leaves."""

import sys

sys.stdin.readline()
print('{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}')
print('{"type":"STATE","stream":"alpha","cursor":{"at":1}}')
print('{"type":"INTERACTION","request_id":"q1","kind":"otp","message":"The code?"}', flush=True)
if sys.argv[1] == "speaks":
    print('{"type":"PROGRESS","message":"Never mind."}', flush=True)
elif sys.argv[1] == "floods":
    for _ in range(64):
        sys.stdout.write("x" * 1_000_000)
if sys.argv[1] != "leaves":
    sys.stdin.readline()
