#!/bin/sh
# A connector without a JSON library: three words, a cursor that counts them, and no narrowing, which it says aloud.
read -r start
end() { printf '{"type":"DONE","status":"%s","records_emitted":%d%s}\n' "$1" "$2" "$3"; }
case $start in
*'"network"'*) ;;
*)
    end failed 0 ',"error":{"message":"START lacks network.","retryable":false}'
    exit 1
    ;;
esac
case $start in
*'"resources"'* | *'"time_range"'* | *'"fields"'*)
    echo '{"type":"SKIP_RESULT","stream":"words","reason":"scope_not_supported"}'
    end succeeded 0
    exit 0
    ;;
esac
sent=$(printf '%s' "$start" | sed -n 's/.*"words":{"sent":\([0-9]*\)}.*/\1/p')
number=0
count=0
for word in one two three four; do
    number=$((number + 1))
    [ "$number" -le "${sent:-0}" ] && continue
    time=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    printf '{"type":"RECORD","stream":"words","key":"%s","data":{"id":"%s"},"emitted_at":"%s"}\n' "$word" "$word" "$time"
    printf '{"type":"STATE","stream":"words","cursor":{"sent":%d}}\n' "$number"
    count=$((count + 1))
done
end succeeded "$count"
