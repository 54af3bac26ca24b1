"""Keeps every rule but for the bytes in a file, which it writes between a good beginning and a good end."""

import json
import sys
from pathlib import Path

RECORD = b'{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}\n'
STATE = b'{"type":"STATE","stream":"alpha","cursor":{"at":1}}\n'
content = Path(sys.argv[1]).read_bytes()
sys.stdin.readline()
sys.stdout.buffer.write(RECORD + STATE + content)
sent = 1 + content.count(b'"RECORD"')
print(json.dumps({"type": "DONE", "status": "succeeded", "records_emitted": sent}))
