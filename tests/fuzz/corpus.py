"""Valid transcripts to start from, and the three ways to spoil them: bytes, JSON, and the order of messages."""

import json
import random
from typing import Any

from vectors.notation import MANIFESTS, done_line, lines_of
from vectors.scenarios import ROWS

AT = "2026-04-01T10:00:00Z"
MORE = [
    {"type": "RECORD", "stream": "alpha", "key": ["u", "1"], "data": {"n": [1, {"x": None}]}, "emitted_at": AT},
    {"type": "RECORD", "stream": "beta", "key": "7", "data": {"id": 7, "s": "\u2028\U0001f3b5"}, "emitted_at": AT},
    {"type": "RECORD", "stream": "inbox", "key": "d", "data": {"id": "d"}, "emitted_at": AT, "op": "delete"},
    {"type": "RECORD", "stream": "albums", "key": "b", "data": {"blob_ref": {"sha256": "0" * 64}}, "emitted_at": AT},
    {"type": "STATE", "stream": "alpha", "cursor": {"n": 10**30, "deep": [[[[]]]]}},
    {"type": "INTERACTION", "request_id": "q", "kind": "otp", "message": "m", "schema": {}, "timeout_seconds": 1.5},
    {"type": "SKIP_RESULT", "stream": "alpha", "reason": "rate_limited", "message": "m",
     "recovery_hint": {"action": "wait_and_retry", "retryable": True}},
    {"type": "DETAIL_GAP", "stream": "photos", "reference_only": True, "record_key": 7, "detail_locator": {"id": 1},
     "retryable": True, "reason": "later", "status": "pending"},
    {"type": "PROGRESS", "message": "m", "count": 1, "total": 2.5},
]  # fmt: skip
VALUES = [
    None, True, False, 0, -1, 1, 1.5, -0.0, 1e300, 10**30, 2**63, "", "x", "alpha", "\x00", "\u2028", [], [1], {},
    {"a": 1}, {"action": "unknown"}, "9" * 5_000, "\u00e9" * 3_000, [[]] * 50, "2026-04-01", "failed", "unknown",
]  # fmt: skip
NAMES = ["type", "stream", "key", "data", "emitted_at", "op", "cursor", "status", "records_emitted", "error", "id", "x"]
PIECES = [
    b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\r", b"null", b"NaN", b"-Infinity", b"1e999", b"-", b"+1", b"01", b"1.", b"9" * 40, b"9" * 5_000, b"[" * 300,
    b"[" * 1_500, b"]" * 1_500, b'{"a":' * 1_200, b"}" * 1_200, rb"\ud800", rb"\udc00\ud800", rb"\u0000", rb"\x",
    b'"type":"RECORD",', b'"type":"STATE",', b'"stream":"beta",', b'"data":{},', b'"data":{"a":1,"a":2}', b" ", b"\t",
    b"\x0b", b"/**/", b"'",
]  # fmt: skip


def transcripts() -> list[tuple[str, list[bytes]]]:
    """Return (manifest, lines) of every scenario, each with some messages of MORE about its own streams before it."""
    plays = []
    for number, row in enumerate(ROWS):
        names = [word.partition("=")[0].partition(":")[0] for word in MANIFESTS[row.manifest].split()]
        more = [{**message, "stream": names[at % len(names)]} for at, message in enumerate(MORE)]
        told = [json.dumps(message, ensure_ascii=number % 2 == 0).encode() for message in more]
        lines = lines_of(row.script)
        done, _ = done_line(row.terminal, sum(b'"RECORD"' in line for line in lines))
        plays.append((row.manifest, [*told[number % 4 : number % 4 + 6], *lines, *done]))
    return plays


class Spoiler:
    """Spoils lines, always in the same way for the same seed."""

    def __init__(self, seed: object) -> None:
        self.chance = random.Random(seed)
        self.plays = transcripts()
        self.lines = [line for _, lines in self.plays for line in lines]

    def transcript(self) -> tuple[str, list[bytes]]:
        """Return a manifest and a transcript whose order and lines are spoiled, some a little and some a lot."""
        chance = self.chance
        manifest, lines = chance.choice(self.plays)
        lines = list(lines)
        for _ in range(chance.choice([0, 1, 2, 8])):
            at = chance.randrange(len(lines))
            match chance.randrange(4):
                case 0:
                    lines.insert(at, chance.choice(self.lines))
                case 1:
                    lines.insert(at, lines[at])
                case 2:
                    lines[at], lines[-1] = lines[-1], lines[at]
                case 3 if len(lines) > 1:
                    del lines[at]
        often = chance.choice([0.05, 0.3, 1])
        return manifest, [self.line(line) if chance.random() < often else line for line in lines]

    def line(self, line: bytes) -> bytes:
        """Spoil one line: its bytes, its JSON, or both."""
        how = self.chance.random()
        if how < 0.6:
            line = self.structure(line)
        if how > 0.4:
            for _ in range(self.chance.choice([1, 1, 2, 5])):
                line = self.cut(line)
        return line.replace(b"\n", b" ")

    def cut(self, line: bytes) -> bytes:
        """Put a piece, or a few bytes of any kind, in the place of some bytes."""
        chance = self.chance
        at = chance.randrange(len(line) + 1)
        piece = chance.choice(PIECES) if chance.random() < 0.7 else chance.randbytes(chance.randrange(6))
        return line[:at] + piece + line[at + chance.choice([0, 0, 1, len(piece), 30]) :]

    def structure(self, line: bytes) -> bytes:
        """Change a value somewhere in the JSON, take a member away, add one, or name one twice."""
        try:
            value = json.loads(line)
        except ValueError:
            return line
        chance = self.chance
        place: Any = value
        while isinstance(place, dict) and place and chance.random() < 0.4:
            place = chance.choice(list(place.values()))
        if not isinstance(place, dict) or not place:
            place = value
        name = chance.choice(list(place))
        match chance.randrange(4):
            case 0:
                place[name] = chance.choice(VALUES)
            case 1:
                del place[name]
            case 2:
                place[chance.choice(NAMES)] = chance.choice(VALUES)
            case 3:
                text = json.dumps(value)
                member = f"{json.dumps(name)}: {json.dumps(place[name])}"
                return text.replace(member, f"{member}, {member}", 1).encode()
        return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
