"""What each command may print: its result is held to this before anybody sees it (CLI-033).

A shape is a type, `None`, a tuple of shapes of which one fits, a list with the shape of its items, or a table of
members; a name with `?` may be absent, and the name `...` stands for any. `object` is whatever a provider or a
connector said.
"""

from collections.abc import Mapping
from typing import Any, Final

from headwater.cli.operating_shapes import MAYBE_TEXT, NAMES, OPERATING, OPERATION, SELECTORS, Shape

_COUNTS: Final = {"accepted": int, "unchanged": int, "deleted": int, "rejected": int, "gaps": int}
_FAULTS: Final = [{"pointer": str, "rule": str, "message": str}]

_RUN: Final = {
    "run_id": str,
    "instance": str,
    "mode": str,
    "status": str,
    "cause": MAYBE_TEXT,
    "message": MAYBE_TEXT,
    "started_at": str,
    "ended_at": MAYBE_TEXT,
    "namespace": MAYBE_TEXT,
}
_LISTED_RUN: Final = {**_RUN, "accepted": (int, None), "unchanged": (int, None), "rejected": (int, None)}
_WITHHELD: Final = [{"stream": str, "reason": MAYBE_TEXT, "message": MAYBE_TEXT, "keys?": [object]}]
_WHOLE_RUN: Final = {
    **_RUN,
    "connector_id": str,
    "facts": {...: object},
    "stderr_tail": MAYBE_TEXT,
    "undone_by": MAYBE_TEXT,
    "streams": [{"stream": str, **_COUNTS}],
    "checkpoints": {
        "committed": NAMES,
        "withheld": _WITHHELD,
        "covered": [{"stream": str, "by": str, "status": str}],
    },
    "healed": int,
    "gaps": [
        {
            "stream": str,
            "parent": MAYBE_TEXT,
            "key": MAYBE_TEXT,
            "locator": MAYBE_TEXT,
            "reason": MAYBE_TEXT,
            "retryable": bool,
            "status": str,
            "times": int,
        }
    ],
    "events": [{"kind": str, "at": str, "data": object}],
}
_EXPLAINED_STREAM: Final = {
    "stream": str,
    "seen": int,
    "kept": int,
    "unchanged": int,
    "deleted": int,
    "rejected": int,
    "gaps": int,
}
_SUMMARY: Final = {
    "run_id": str,
    "instance": str,
    "status": str,
    "cause": MAYBE_TEXT,
    "message": MAYBE_TEXT,
    "streams": [{"stream": str, **_COUNTS}],
    "checkpoints": {"committed": NAMES, "withheld": _WITHHELD},
    "connector_error?": {...: object},
    "gaps_retried?": {"run_id": str, "status": str, "tried": int, "healed": int},
}
_GAP: Final = {
    "gap": int,
    "instance": str,
    "stream": str,
    "parent": MAYBE_TEXT,
    "key": MAYBE_TEXT,
    "reason": MAYBE_TEXT,
    "retryable": bool,
    "status": str,
    "times": int,
    "tries": int,
    "tried_at": MAYBE_TEXT,
    "due_at": MAYBE_TEXT,
    "first_run": str,
    "last_run": str,
}
_RECEIPT: Final = {
    "receipt": int,
    "run_id": str,
    "instance": str,
    "stream": MAYBE_TEXT,
    "reason": str,
    "message": MAYBE_TEXT,
    "key": MAYBE_TEXT,
    "at": str,
}
_RECORD: Final = {
    "instance": str,
    "stream": str,
    "key": str,
    "version": int,
    "time?": str,
    "emitted_at": str,
    "data": object,
}
_DECLARED: Final = {
    "shape": str,
    "connector_id": str,
    "source_kind": MAYBE_TEXT,
    "version": MAYBE_TEXT,
    "display_name": MAYBE_TEXT,
    "publisher": object,
    "bindings": NAMES,
    "human_interaction": NAMES,
    "presets": [{"id": str, "label": MAYBE_TEXT, "streams": NAMES}],
    "streams": [{"stream": str, ...: object}],
}
_ADDED: Final = {
    "connector": str,
    "connector_id": str,
    "version": MAYBE_TEXT,
    "digest": str,
    "files": int,
    "installed": NAMES,
    "streams": NAMES,
    "bindings": NAMES,
}
_SCHEDULE: Final = {
    "instance": str,
    "paused": bool,
    "next_at": MAYBE_TEXT,
    "last_started_at": MAYBE_TEXT,
    "last_status": MAYBE_TEXT,
    "failures": int,
    "fault": ({"code": str, "message": str}, None),
    ...: object,
}


def _page(item: Shape, **more: Shape) -> Shape:
    return {"items": [item], **more, "next_cursor?": str}


_OBSERVATION: Final = {
    **dict.fromkeys(("adapter", "connector", "instance", "configuration_revision", "state"), str),
    "observed_at_ms": int,
    **dict.fromkeys(("host_incarnation?", "child_incarnation?", "failure?", "start_failure?", "start_log?"), str),
    **dict.fromkeys(("start_exit_code?", "start_signal?"), int),
}

_LABELS: Final = {"source": str, "stale": bool, "observed_at_ms": int, "valid_until_ms?": int}
_CONNECTION: Final = {
    **SELECTORS,
    **dict.fromkeys(("instance_id", "connection", "profile", "state"), str),
    "revision": int,
}
_CONNECTED: Final = {**SELECTORS, "connection": str, "acquisition": str}
_DESCRIBED: Final = {"connection": {**_CONNECTION, "external_identity": {"kind": str, "subject": str}, **_LABELS}}
_ACQUISITION: Final = {
    **dict.fromkeys(("instance_id", "acquisition", "state", "next_action", "reason?", "connection?"), str),
    **dict.fromkeys(("expires_at_ms", "observed_at_ms"), int),
}

SHAPES: Final[Mapping[str, Shape]] = {
    "demo": (_SUMMARY, {"stored_before": int, "stored": int, "lost": int, "doubled": int}),
    "collect": _SUMMARY,
    "collect schedule set": _SCHEDULE,
    "collect schedule pause": _SCHEDULE,
    "collect schedule resume": _SCHEDULE,
    "collect schedule remove": {"instance": str},
    "collect schedule list": {"schedules": [_SCHEDULE]},
    "collect schedule run": {"runs": ({...: int}, [{"instance": MAYBE_TEXT, ...: object}])},
    "streams list": {
        "streams": [
            {
                "instance": str,
                "stream": str,
                "semantics": MAYBE_TEXT,
                "records": int,
                "updated_at": MAYBE_TEXT,
                "checkpoint_at": MAYBE_TEXT,
                "inactive_since_ms": (int, None),
            }
        ]
    },
    "records list": _page(_RECORD, **{"inactive_since_ms?": int}),
    "records get": {**_RECORD, "run_id": str},
    "records history": {
        "versions": [{"version": int, "emitted_at": str, "data": object, "run_id": str, "deleted": bool}]
    },
    "records search": _page({"instance": str, "stream": str, "key": str, ...: object}, complete=bool, searched=int),
    "records export": {"records": int, "out": str},
    "runs list": _page(_LISTED_RUN),
    "runs show": _WHOLE_RUN,
    "runs explain": {**_WHOLE_RUN, "streams": [_EXPLAINED_STREAM]},
    "runs cancel": {"run_id": str, "status": str},
    "runs undo": {
        "undone": str,
        "streams": [{"stream": str, "restored": int, "removed": int}],
        "cursors": NAMES,
        "dry_run": bool,
        "run_id?": str,
    },
    "inbox list": {
        "items": [
            {
                "question": str,
                "run_id": str,
                "instance": str,
                "kind": str,
                "message": str,
                "schema": object,
                "seconds_left": int,
            }
        ]
    },
    "inbox answer": {"question": str, "status": str},
    "gaps list": _page(_GAP),
    "gaps explain": {**_GAP, "locator": object, "last_error": object},
    "gaps retry": {
        "items": [{"instance": str, "tried": int, "healed": int, "open": int, "run_id": str, "status": str}]
    },
    "rejections list": _page({**_RECEIPT, "bytes": (int, None)}),
    "rejections show": {**_RECEIPT, "line_base64": MAYBE_TEXT},
    "state show": {
        "cursors": [
            {
                "instance": str,
                "namespace": str,
                "stream": str,
                "cursor": object,
                "committed_at": str,
                "run_id": str,
            }
        ]
    },
    "setup init": {"disposition": str, "config_path": str, "state_path": str, "os": str},
    "setup check": {
        "config_path": str,
        "state_path": str,
        "os": str,
        "keyring": str,
        "prerequisites": [dict.fromkeys(("name", "state", "detail", "next_action", "command"), str)],
        "confinement": {...: object},
    },
    "setup checkpoints-enable": dict.fromkeys(
        ("disposition", "state_path", "change", "newest_incompatible_release"), str
    ),
    "setup migrate": {
        "disposition": str,
        "configuration": str,
        "format_before": str,
        "format_after": str,
        "backup_path?": str,
        "entries": [{"alias": str, "disposition": str, "before": {...: object}, "after": {...: object}, ...: str}],
    },
    "list": {"connectors": [{"connector": str, "profiles": NAMES, "instances": NAMES}]},
    "instances add": {"instance": str, "options": {...: object}, "bindings": {...: {...: object}}},
    "instances remove": {"instance": str, "kept": NAMES, "configured": bool},
    "instances list": {
        "instances": [dict.fromkeys(("connector", "instance", "instance_id", "startup", "restart"), str)],
        "unmigrated?": NAMES,
        "source": str,
    },
    "instances describe": {
        **SELECTORS,
        "configuration": {"instance_id": str, "configuration_revision": str, ...: object},
        "descriptor?": {
            **dict.fromkeys(("version", "adapter", "instance", "revision", "configuration_schema"), str),
            "operations": [{**OPERATION, "schema": str, "input_schema": {...: object}, "output_schema": {...: object}}],
        },
        "source": str,
        "stale": bool,
    },
    "setup owner-stop": {"disposition": str, "state_path": str},
    "instances status": {"observation": _OBSERVATION},
    "instances stop": {"observation": _OBSERVATION},
    "connections connect": _CONNECTED,
    "connections reconnect": _CONNECTED,
    "connections revalidate": {**SELECTORS, "connection": str},
    "connections list": {"connections": [_CONNECTION], "next_cursor?": str, **_LABELS},
    "connections describe": _DESCRIBED,
    "connections status": (_DESCRIBED, {"acquisition": _ACQUISITION}),
    "connections revoke": {
        **SELECTORS,
        **dict.fromkeys(("connection", "local_state", "provider_outcome"), str),
        "revision": int,
    },
    "connections token": {
        **SELECTORS,
        **dict.fromkeys(("connection", "issue", "expires_at?"), str),
        "scopes": NAMES,
        "refreshed": bool,
    },
    **OPERATING,
    "serve": {"listening": str, "token_file": str},
    "connectors list": {
        "connectors": [{"connector": str, "origin": str, "version": MAYBE_TEXT, "digest": str, "description": str}]
    },
    "connectors show": {
        **_DECLARED,
        "connector": str,
        "origin": str,
        "digest": str,
        "changes": NAMES,
        "command": NAMES,
        "compatibility": MAYBE_TEXT,
        "options": {...: object},
        "required_options": NAMES,
    },
    "connectors integrations": {
        "integrations": [
            {
                **dict.fromkeys(
                    ("connector", "key", "version", "display_name", "description", "provider", "origin"), str
                ),
                "enabled": bool,
                "capabilities": NAMES,
                "methods": [{"key": str, "label": str, "flow": str, "fields": [{...: (str, bool)}]}],
                "actions": NAMES,
                "resource_concurrency": int,
                "warnings": NAMES,
            }
        ],
        "left_out": [{"connector": str, "pointer": str, "message": str}],
    },
    "connectors enable": {"connector": str, "key": str, "enabled": bool},
    "connectors disable": {"connector": str, "key": str, "enabled": bool},
    "connections refresh": _SUMMARY,
    "connections configure": {**SELECTORS, "options": {...: object}},
    "connections disconnect": {
        **dict.fromkeys(("adapter", "connector", "instance", "connection", "revocation", "credential", "records"), str),
        "inactive_since_ms": int,
    },
    "connections webhook": {
        **SELECTORS,
        **dict.fromkeys(("connection", "endpoint", "path", "secret?"), str),
        **dict.fromkeys(("made_at_ms", "accepted", "repeated", "dropped"), int),
    },
    "connectors new": {"folder": str, "next": NAMES},
    "connectors add": {**_ADDED, "next": NAMES},
    "connectors upgrade": {**_ADDED, "changed": bool, "changes": NAMES, "asks": NAMES},
    "connectors remove": {"connector": str, "instances": NAMES, "kept": NAMES},
    "connectors certify": {
        "conforms": bool,
        "clauses": [{**dict.fromkeys(("clause", "level", "verdict", "what", "seen", "remedy?"), str)}],
    },
    "connectors check": {
        "conforms": bool,
        "seed": int,
        "runs": int,
        "left_out": {...: str},
        "clauses": [{"clause": str, "level": str, "verdict": str, ...: object}],
    },
    "definitions check": {"definition": str, "faults": []},
    "definitions install": {
        **dict.fromkeys(("source", "tag", "commit", "index_sha256", "lock_path", "cache_path", "cache_entry"), str),
        "features": NAMES,
        "files": int,
    },
    "definitions list": {
        "releases": [{"release": str, "instances": NAMES, "files?": int, "fault?": {...: str}, ...: str}],
    },
    "definitions use": (
        {"connections": [dict.fromkeys(("connection", "state"), str)], "profiles": NAMES, ...: str},
        {"instance": str, "release": None, "disposition": str, "is_served": bool},
    ),
    "connectors validate": {**_DECLARED, "advice": _FAULTS},
}


def fits(command: str, value: Any) -> bool:
    """Whether a value is what a command may print; under an old name, what its new one may."""
    return _fits(SHAPES.get(command.replace("adapters ", "instances ", 1), object), value)


def _fits(shape: Shape, value: Any) -> bool:
    match shape:
        case None:
            return value is None
        case tuple():
            return any(_fits(one, value) for one in shape)
        case list():
            return isinstance(value, list | tuple) and all(_fits(shape[0], item) for item in value)
        case dict():
            return isinstance(value, Mapping) and _members_fit(shape, value)
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))


def _members_fit(shape: Mapping[Any, Shape], value: Mapping[str, Any]) -> bool:
    rest = dict(value)
    other = shape.get(...)
    for name, one in shape.items():
        if name is ...:
            continue
        bare = name.removesuffix("?")
        if bare not in rest and bare == name:
            return False
        if bare in rest and not _fits(one, rest.pop(bare)):
            return False
    return not rest if other is None else all(_fits(other, item) for item in rest.values())
