"""Sends records for ever, after telling a named pipe that it has begun."""

import itertools
import sys

sys.stdin.readline()
for number in itertools.count():
    record = f'"stream":"alpha","key":"{number}","data":{{"id":"{number}"}},"emitted_at":"2026-04-01T10:00:00Z"'
    print(f'{{"type":"RECORD",{record}}}')
    print(f'{{"type":"STATE","stream":"alpha","cursor":{{"at":{number}}}}}', flush=True)
    if number == 1000:
        with open(sys.argv[1], "w") as pipe:
            pipe.write("begun\n")
