"""Asks a second question while the first one is open."""

import sys

ASK = '{"type":"INTERACTION","request_id":"%s","kind":"otp","message":"The code?"}\n'
RECORD = '{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}\n'
sys.stdin.readline()
sys.stdout.write(RECORD + '{"type":"STATE","stream":"alpha","cursor":{"at":1}}\n' + ASK % "q1" + ASK % "q2")
sys.stdout.flush()
sys.stdin.readline()
sys.stdin.readline()
print('{"type":"DONE","status":"succeeded","records_emitted":1}')
