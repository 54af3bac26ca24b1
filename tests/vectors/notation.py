"""Scripted runs in the notation of conformance/collection-vectors.md, and the seven manifests that it names.

    S x=c                            STATE                F x, F –               a stream failed, or none is named
    C d→p [req ¦ hyd ¦ gap k]        DETAIL_COVERAGE      G d→p k, G d→– k       DETAIL_GAP
    E d n=e+u+g+x                    STREAM_EVIDENCE      R x k                  RECORD
    {"type": …}                      the line as it is

Statements are separated by "; ". A terminal is ok, scf, failed, failed[code], cancelled, or – for no DONE.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Abort, Effect
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.session import Session
from headwater.collect.verdict import STREAM_FAILED, Exit, Verdict
from headwater.manifest.declaration import Declaration
from headwater.manifest.reading import read

MANIFESTS = {
    "FLAT": "alpha beta gamma",
    "RIDER": "threads notes stamps=threads",
    "SOLO": "albums notes photos:albums",
    "DUAL": "inbox archive bodies:inbox,archive",
    "MIX": "inbox archive people bodies:inbox,archive labels=inbox",
    "TWINS": "albums photos:albums faces:albums",
    "COMBO": "alpha beta threads albums stamps=threads photos:albums",
}
AT = "2026-04-01T10:00:00Z"


def _stream(word: str) -> dict[str, Any]:
    name, sign, parents = re.fullmatch(r"(\w+)([=:]?)(.*)", word).groups()
    edges = {
        "=": {"state_stream": parents, "coverage_strategy": "checkpoint_window"},
        ":": {"parent_streams": parents.split(","), "coverage_strategy": "parent_detail_accounting"},
    }
    return {"name": name, "schema": {"type": "object"}, "primary_key": ["id"], **edges.get(sign, {})}


def manifest_text(manifest: str) -> bytes:
    """Write one of the seven manifests, or one spelled as they are."""
    streams = [_stream(word) for word in MANIFESTS.get(manifest, manifest).split()]
    return json.dumps({"connector_id": "https://example.org/c", "streams": streams}).encode()


def declared(manifest: str) -> Declaration:
    """Read one of the seven manifests, or one spelled as they are."""
    return read(manifest_text(manifest))


def _keys(text: str) -> list[str | int]:
    return [json.loads(word) if word[0] in '"0123456789' else word for word in text.replace("∅", "").split()]


def _coverage(stream: str, parent: str, sets: str) -> dict[str, Any]:
    required, hydrated, *others = (part.strip() for part in sets.strip("[]").split("¦"))
    named = {"required_keys": required, "hydrated_keys": hydrated}
    named |= {{"gap": "gap_keys", "optional": "optional_skip_keys"}[o.split()[0]]: o.partition(" ")[2] for o in others}
    sets_of = {name: _keys(keys) for name, keys in named.items()}
    return {"type": "DETAIL_COVERAGE", "stream": stream, "state_stream": parent, "reference_only": True, **sets_of}


def message(statement: str) -> dict[str, Any]:
    """Turn one statement of the notation into a message."""
    sign, stream, rest = re.fullmatch(r"(\w) ([\w–]+)[=→ ]?(.*)", statement).groups()
    parent, _, tail = rest.partition(" ")
    match sign:
        case "S":
            return {"type": "STATE", "stream": stream, "cursor": {"at": rest}}
        case "R":
            return {"type": "RECORD", "stream": stream, "key": rest, "data": {"id": rest}, "emitted_at": AT}
        case "F":
            named = {} if stream == "–" else {"stream": stream}
            return {"type": "SKIP_RESULT", "reason": STREAM_FAILED, "message": "It failed.", **named}
        case "C":
            return _coverage(stream, parent, tail)
        case "G":
            named = {} if parent == "–" else {"parent_stream": parent}
            return {"type": "DETAIL_GAP", "stream": stream, "record_key": _keys(tail)[0], "reason": "later", **named}
        case "E":
            considered, *counts = (int(number) for number in rest.replace("=", "+").split("+"))
            outcomes = dict(zip(("emitted", "unchanged", "gapped", "unaccounted"), counts, strict=True))
            members = {"stream": stream, "considered": considered, "outcomes": outcomes}
            return {"type": "STREAM_EVIDENCE", "reference_only": True, **members}
    raise ValueError(statement)


def lines_of(script: str) -> list[bytes]:
    """Turn a script into the lines that a connector would write."""
    statements = [part for part in script.split("; ") if part]
    return [part.encode() if part[0] == "{" else json.dumps(message(part)).encode() for part in statements]


def done_line(terminal: str, records: int) -> tuple[list[bytes], int]:
    """Return the DONE of a terminal, none for "–", and the exit status that agrees with it."""
    word, _, code = terminal.replace("scf", f"failed[{STREAM_FAILED}]").rstrip("]").partition("[")
    if word == "–":
        return [], 1
    done: dict[str, Any] = {"type": "DONE", "records_emitted": records}
    done["status"] = "succeeded" if word == "ok" else word
    if word == "failed":
        done["error"] = {"message": "It failed.", "retryable": False, **({"code": code} if code else {})}
    return [json.dumps(done).encode()], 0 if word == "ok" else 1


@dataclass(frozen=True)
class Played:
    """A scripted run after its end."""

    session: Session
    verdict: Verdict
    decision: Decision
    effects: list[Effect | None] = field(default_factory=list)

    @property
    def committed(self) -> dict[str, str]:
        """The cursors that commit; what a script calls c for a cursor {"at": c}."""
        return {name: json.loads(self.session.staged[name]).get("at") for name in self.decision.committed}

    @property
    def withheld(self) -> dict[str, str]:
        """The reason of each staged checkpoint that does not commit."""
        return {held.stream: held.reason for held in self.decision.withheld}


class Player:
    """Plays scripts over the seven manifests."""

    declared = staticmethod(declared)
    lines = staticmethod(lines_of)

    def begin(self, manifest: str | Declaration, scope: str = "", **plan: Any) -> Session:
        """Start a run over all streams, or over the named ones."""
        declaration = declared(manifest) if isinstance(manifest, str) else manifest
        session = Session(RunPlan("run_1", declaration, plan_scope(declaration, names=scope.split()), **plan))
        session.start()
        return session

    def __call__(
        self, manifest: str | Declaration, script: str, terminal: str = "ok", *, off: int = 0,
        exit_code: int | None = None, cancel: bool = False, **options: Any,
    ) -> Played:  # fmt: skip
        """Run a script to its end. `off` falsifies the count of records, `exit_code` overrides the one that agrees."""
        session = self.begin(manifest, **options)
        effects = [session.receive(line) for line in lines_of(script)]
        done, agreeing = done_line(terminal, session.records_seen + off)
        effects += [session.receive(line) for line in done]
        if cancel:
            session.cancel()
        return Played(session, *session.end(Exit(agreeing if exit_code is None else exit_code)), effects)

    def refused(self, manifest: str, line: str, **options: Any) -> str | None:
        """Play a line between two STATEs and an agreeing end, hold it to have ended the run, and return its rule."""
        stream = MANIFESTS[manifest].split()[0]
        played = self(manifest, f"S {stream}=c1; {line}; S {stream}=c2", **options)
        rule = next((effect.rule for effect in played.effects if isinstance(effect, Abort)), None)
        assert (played.verdict.status, played.verdict.cause, played.committed) == ("failed", rule, {})
        assert (played.withheld, json.loads(played.session.staged[stream])) == ({stream: rule}, {"at": "c1"})
        return rule
