#!/bin/sh
# Says DONE with one status, and exits with another.
read -r start
cat <<END
{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"STATE","stream":"alpha","cursor":{"at":1}}
END
cat <<END
{"type":"DONE","status":"$1","records_emitted":1}
END
exit "$2"
