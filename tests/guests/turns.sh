#!/bin/sh
# Sends a record, waits until somebody reads a named pipe, and sends another with its cursor; then waits for a second.
read -r start
echo '{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}'
: > "$1"
echo '{"type":"RECORD","stream":"alpha","key":"a2","data":{"id":"a2"},"emitted_at":"2026-04-01T10:00:00Z"}'
echo '{"type":"STATE","stream":"alpha","cursor":{"at":1}}'
: > "$2"
echo '{"type":"DONE","status":"succeeded","records_emitted":2}'
