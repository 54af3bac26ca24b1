"""Notes every line it is told in a file, and saves the cursor it is given as JSON."""

import json
import sys
from pathlib import Path

notes, cursor = Path(sys.argv[1]), sys.argv[2]
start = sys.stdin.readline()
for stream in json.loads(start)["scope"]["streams"]:
    name, key = stream["name"], f"{stream['name']}1"
    record = {"stream": name, "key": key, "data": {"id": key}, "emitted_at": "2026-04-01T10:00:00Z"}
    print(json.dumps({"type": "RECORD", **record}))
    print(f'{{"type":"STATE","stream":"{name}","cursor":{cursor}}}')
count = len(json.loads(start)["scope"]["streams"])
print(f'{{"type":"DONE","status":"succeeded","records_emitted":{count}}}', flush=True)
with notes.open("a") as file:
    file.write(start + sys.stdin.read())
