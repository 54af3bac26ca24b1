#!/bin/sh
# Leaves a process behind that holds its stdout open.
read -r start
cat <<END
{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"STATE","stream":"alpha","cursor":{"at":1}}
END
sleep 600 &
cat <<END
{"type":"DONE","status":"succeeded","records_emitted":1}
END
