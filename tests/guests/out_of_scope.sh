#!/bin/sh
# Sends a record of a stream that was not asked for. What it holds is nobody's business.
read -r start
cat <<END
{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"RECORD","stream":"beta","key":"b1","data":{"id":"b1","text":"unasked"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"STATE","stream":"alpha","cursor":{"at":1}}
{"type":"DONE","status":"succeeded","records_emitted":2}
END
exit 0
