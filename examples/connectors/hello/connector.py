"""Collects four greetings. No SDK: the protocol is a JSON object on each line."""

import json
import sys
from datetime import UTC, datetime

GREETINGS = {"de": "Hallo", "en": "Hello", "fr": "Bonjour", "sw": "Jambo"}


def say(**message):
    print(json.dumps(message), flush=True)


start = json.loads(sys.stdin.readline())
saved = (start["state"] or {}).get("greetings", {"after": ""})
wanted = start["scope"]["streams"][0].get("resources", GREETINGS)
new = [language for language in sorted(GREETINGS) if language > saved["after"] and language in wanted]
for language in new:
    data = {"language": language, "text": GREETINGS[language]}
    say(type="RECORD", stream="greetings", key=language, data=data, emitted_at=datetime.now(UTC).isoformat())
if wanted is GREETINGS:
    say(type="STATE", stream="greetings", cursor={"after": max(GREETINGS)})
say(type="DONE", status="succeeded", records_emitted=len(new))
