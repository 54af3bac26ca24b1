"""Sends so many records of 1 KB to each of so many streams, by turns, and a cursor for each at the end."""

import sys

AT = "2026-04-01T10:00:00Z"
streams, records = map(int, sys.argv[1:])
say, text = sys.stdout.write, "x" * 900
sys.stdin.readline()
for record in range(records):
    for stream in range(streams):
        members = f'"stream":"s{stream}","key":"{record}","data":{{"id":"{record}","text":"{text}"}}'
        say(f'{{"type":"RECORD",{members},"emitted_at":"{AT}"}}\n')
for stream in range(streams):
    say(f'{{"type":"STATE","stream":"s{stream}","cursor":{{"at":1}}}}\n')
say(f'{{"type":"DONE","status":"succeeded","records_emitted":{streams * records}}}\n')
