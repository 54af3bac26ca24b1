#!/bin/sh
# Sends two sound records, and between them one that fits no schema, one with a wrong key, one that names a member twice.
read -r start
cat <<'END'
{"type":"RECORD","stream":"alpha","key":"a1","data":{"id":"a1"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"RECORD","stream":"alpha","key":"a2","data":{"id":"a2","text":5},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"RECORD","stream":"alpha","key":"a3","data":{"id":"another"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"RECORD","stream":"alpha","key":"a4","data":{"id":"a4","id":"a5"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"RECORD","stream":"alpha","key":"a6","data":{"id":"a6"},"emitted_at":"2026-04-01T10:00:00Z"}
{"type":"STATE","stream":"alpha","cursor":{"at":1}}
{"type":"DONE","status":"succeeded","records_emitted":5}
END
