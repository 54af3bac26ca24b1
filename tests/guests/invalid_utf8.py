"""Sends a record with bytes that are no UTF-8."""

import sys

RECORD = b'{"type":"RECORD","stream":"alpha","key":"%s","data":{"id":"%s"},"emitted_at":"2026-04-01T10:00:00Z"}\n'
sys.stdin.readline()
sys.stdout.buffer.write(RECORD % (b"a1", b"a1"))
sys.stdout.buffer.write(b'{"type":"STATE","stream":"alpha","cursor":{"at":1}}\n')
sys.stdout.buffer.write(RECORD % (b"\xff\xfe", b"\xff\xfe"))
sys.stdout.buffer.write(b'{"type":"DONE","status":"succeeded","records_emitted":2}\n')
