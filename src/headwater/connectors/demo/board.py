"""What the demo's provider serves: the message board of a made-up street, the same on every machine, without I/O.

In round 0 it holds 2,196 messages. Each later round adds twelve, edits five and deletes one.
"""

import struct
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

MESSAGES: Final = 2_196
ADDED: Final = 12
EDITED: Final = 5
ATTACHMENT_EVERY: Final = 12


def _words(*lines: str) -> list[str]:
    return [word for line in lines for word in line.split(" / ")]


_NAMES: Final = _words(
    "Ada Okafor / Bruno Lindqvist / Chidi Eze / Dana Cohen / Emre Yıldız / Farah Haddad / Goran Petrović / Hana Suzuki",
    "Inês Carvalho / Jonas Weber / Keala Kahale / Leila Rahimi / Mateo Quispe / Minh Anh Nguyễn / Oksana Bondar",
    "Priya Raman / Quentin Moreau / Ruth Abara / Søren Holm / Tala Santos / Umar Siddiqui / Vera Novák / Wiremu Tamati",
    "Ximena Ríos / Yusuf Demir / Zoë Janssens / Amara Diallo / Bashir Noorzai / Yulan Chen / Divya Menon",
    "Eilidh MacRae / Folake Adeyemi / Gwen Pritchard / Hyun-woo Park / Ilse de Vries / Joaquim Tavares / Kofi Mensah",
    "Łukasz Zieliński / Marit Aikio / Niko Papadakis",
)
_THINGS: Final = _words(
    "ladder / lantern / piano / kettle / canoe / beehive / projector / wheelbarrow / bread oven / telescope",
    "sewing machine / rain barrel / notice board / bicycle pump / apple press / folding table",
)
_DOINGS: Final = _words(
    "repaired / painted / found again / oiled / moved / measured / cleaned / photographed / put away"
)
_PLACES: Final = _words(
    "by the river / behind the station / at number nine / on the hill / near the old mill / in the yard"
)
_OPENINGS: Final = _words(
    "Good news: / A small thing: / Before I forget: / As promised: / Thanks to all of you, / For those who asked:"
)
_CLOSINGS: Final = _words(
    "Come and see it on {day}. / Tea is on at four. / Bring gloves if you have some. / I will write again on {day}.",
    "Tell me if you need a hand. / There is cake left over. / The key is with me until {day}.",
)
_SUBJECTS: Final = _words(
    "The {thing} {place} / About the {thing} / Who needs the {thing} on {day}? / The {thing} has been {doing}"
)
_DAYS: Final = _words("Monday / Tuesday / Wednesday / Thursday / Friday / Saturday / Sunday")
_CHANNELS: Final = _words("notices / repairs / garden / kitchen / music / boats")
_FIRST_MESSAGE: Final = datetime(2025, 1, 1, tzinfo=UTC)
_BEFORE_ROUNDS: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _hash(subject: str, index: int) -> int:
    return zlib.crc32(f"{subject}/{index}".encode())


def _pick(words: Sequence[str], subject: str, index: int) -> str:
    return words[_hash(subject, index) % len(words)]


def stamp(moment: datetime) -> str:
    """Write a time as RFC 3339, so that later times sort later as text."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def position(message: dict[str, Any]) -> tuple[str, str]:
    """Return a message's place in the order of last changes."""
    return message["updated_at"], message["id"]


def people() -> list[dict[str, Any]]:
    """Return everybody who writes."""
    listed = [(f"p{index:02d}", name) for index, name in enumerate(_NAMES)]
    return [{"id": key, "name": name, "email": f"{key}@harbour-street.example"} for key, name in listed]


def history(rounds: int) -> list[dict[str, Any]]:
    """Return every message after some rounds, in the order of sending. Deleted ones stay as tombstones."""
    minutes = [index * 240 + _hash("minute", index) % 200 for index in range(MESSAGES)]
    messages = [_message(index, _FIRST_MESSAGE + timedelta(minutes=at)) for index, at in enumerate(minutes)]
    for number in range(1, rounds + 1):
        _play_round(messages, number, _BEFORE_ROUNDS + timedelta(days=number))
    return messages


def _message(index: int, sent: datetime) -> dict[str, Any]:
    sender = _hash("sender", index) % len(_NAMES)
    words = {"thing": _THINGS, "doing": _DOINGS, "place": _PLACES, "day": _DAYS}
    chosen = {name: _pick(several, name, index) for name, several in words.items()}
    opening, closing = _pick(_OPENINGS, "opening", index), _pick(_CLOSINGS, "closing", index).format(**chosen)
    news = f"the {chosen['thing']} {chosen['place']} has been {chosen['doing']}."
    return {
        "id": f"msg_{index:04d}",
        "channel": _pick(_CHANNELS, "channel", index),
        "sent_at": stamp(sent),
        "updated_at": stamp(sent),
        "sender_id": f"p{sender:02d}",
        "subject": _pick(_SUBJECTS, "subject", index).format(**chosen),
        "body": f"{opening} {news} {closing}\n\n{_NAMES[sender].split()[0]}",
        "attachment_ids": [f"att_{index:04d}"] if index % ATTACHMENT_EVERY == ATTACHMENT_EVERY - 1 else [],
    }


def _play_round(messages: list[dict[str, Any]], number: int, day: datetime) -> None:
    """Let a day pass: twelve messages from eight o'clock on, edits in the evening, then one without a file goes."""
    for step in range(EDITED):
        edited = _standing(messages, number * 173 + step * 431)
        edited["body"] += f"\n\nEdited: make that {_pick(_DAYS, 'edited', number * EDITED + step)}."
        edited["updated_at"] = stamp(day + timedelta(hours=20, minutes=step))
    gone = _standing([message for message in messages if not message.get("attachment_ids")], number * 211)
    tombstone = {"id": gone["id"], "sent_at": gone["sent_at"], "updated_at": stamp(day + timedelta(hours=21))}
    gone.clear()
    gone.update(tombstone, deleted=True)
    for step in range(ADDED):
        messages.append(_message(len(messages), day + timedelta(hours=8, minutes=step * 40)))


def _standing(messages: Sequence[dict[str, Any]], start: int) -> dict[str, Any]:
    """Return the first message from a place on that was not deleted."""
    turned = (messages[(start + offset) % len(messages)] for offset in range(len(messages)))
    return next(message for message in turned if "deleted" not in message)


def attachment(name: str) -> tuple[str, str, bytes]:
    """Return a file's name, type and bytes: a note, a drawing or a picture."""
    index = int(name.removeprefix("att_"))
    thing = _pick(_THINGS, "thing", index)
    stem, hue = f"{thing.replace(' ', '-')}-{index:04d}", index * 37 % 360
    match index // ATTACHMENT_EVERY % 3:
        case 0:
            lines = [f"The {thing}, note {index}", "", f"Width: {index % 70 + 30} cm", "Ask at number nine.", ""]
            return f"{stem}.txt", "text/plain", "\n".join(lines).encode()
        case 1:
            circle = f'<circle cx="60" cy="60" r="{index % 40 + 20}" fill="hsl({hue} 60% 55%)"/>'
            drawn = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 120"><title>{stem}</title>{circle}</svg>'
            return f"{stem}.svg", "image/svg+xml", drawn.encode()
        case _:
            return f"{stem}.png", "image/png", _png(hue % 256, index % 256)


def _png(red: int, blue: int, side: int = 24) -> bytes:
    """Paint a slope of colours; its bytes are stored unpacked, so that every zlib writes the same ones."""
    rows = b"".join(b"\0" + bytes(c for x in range(side) for c in (red, x * y % 256, blue)) for y in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b"")]
    packed = [struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
