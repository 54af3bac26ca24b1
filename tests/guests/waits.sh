#!/bin/sh
# Tells a named pipe that it has begun, and then waits to be stopped.
read -r start
cat <<END
{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"STATE","stream":"alpha","cursor":{"at":1}}
END
echo ready > "$1"
exec sleep 600
