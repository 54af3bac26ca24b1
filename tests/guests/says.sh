#!/bin/sh
# Says a line of your choice between a STATE and a DONE.
read -r start
cat <<END
{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"STATE","stream":"alpha","cursor":{"at":1}}
END
printf '%s\n' "$1"
cat <<END
{"type":"DONE","status":"succeeded","records_emitted":1}
END
