#!/bin/sh
# Keeps every rule: one record, one cursor, DONE. With a word after it, the cursor holds that word.
read -r start
cat <<END
{"type":"RECORD","stream":"alpha","key":"a0","data":{"id":"a0"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"STATE","stream":"alpha","cursor":{"at":"${1:-before}"}}
{"type":"DONE","status":"succeeded","records_emitted":1}
END
