"""What `operations`, `approvals` and `invoke` may print, in the form of `shapes`."""

from collections.abc import Mapping
from typing import Any, Final

Shape = Any

MAYBE_TEXT: Final = (str, None)
NAMES: Final = [str]
SELECTORS: Final = dict.fromkeys(("adapter", "connector", "instance"), str)
OPERATION: Final = {**dict.fromkeys(("id", "description", "effect", "contract?"), str), "profiles?": NAMES}
_ANSWER: Final = {
    **dict.fromkeys(("connector", "instance", "operation", "revision", "request_id?"), str),
    "result": object,
    "mutation?": {...: object},
    "source_audit?": {...: str},
}
_SHAPED: Final[Shape] = {"missing?": NAMES, "request_id?": str, ...: object}
_POLICY: Final = {
    **SELECTORS,
    "policy?": {
        **dict.fromkeys(("policy_id", "instance_id", "issuer_id"), str),
        **dict.fromkeys(("revision", "owner_uid"), int),
        "selection": {...: MAYBE_TEXT},
        "operations": NAMES,
    },
    "current?": bool,
}
_KEYS: Final = {
    "issuer?": {
        **dict.fromkeys(("issuer", "audience"), str),
        "revision": int,
        "keys": [dict.fromkeys(("key_id", "public_key", "state"), str)],
    }
}
_PREPARATION: Final = {
    "subject": {...: object},
    "subject_sha256": str,
    "presentation": {
        **dict.fromkeys(("instance", "operation", "connection", "descriptor_revision"), str),
        "input?": object,
        "request?": {"method": str, "url": str, "body?": object, "compared?": {...: object}},
    },
    "approval_policy": {**dict.fromkeys(("mode", "issuer", "audience"), str), "max_lifetime_seconds": int},
}
_INVOKED: Final = dict.fromkeys(("connector", "instance", "operation", "revision"), str)

OPERATING: Final[Mapping[str, Shape]] = {
    "operations list": {
        **SELECTORS,
        "revision": str,
        "operations": [OPERATION],
        "next_cursor?": str,
        "source": str,
        "stale": bool,
    },
    "operations describe": {
        **SELECTORS,
        "revision": str,
        "schema": str,
        "operation": {**OPERATION, "input_schema": {...: object}, "output_schema": {...: object}},
        "source": str,
        "stale": bool,
    },
    "approvals prepare": {**SELECTORS, "preparation": _PREPARATION},
    "approvals issue": {
        **SELECTORS,
        **dict.fromkeys(("reference", "subject_sha256", "disposition"), str),
    },
    "approvals policy-status": _POLICY,
    "approvals policy-set": _POLICY,
    "approvals attempts": {
        **SELECTORS,
        "attempts": [
            {
                **dict.fromkeys(("attempt", "at", "operation", "connection", "request_id", "classification"), str),
                "is_open": bool,
                "cause?": {"code": str, "stage": str},
            }
        ],
    },
    "approvals clock-check": {
        **{f"{name}?": shape for name, shape in SELECTORS.items()},
        "observation": {"configuration_sha256": str, "lower_unix_ms": int, "upper_unix_ms": int},
        "sources": [{"source": str, "state": str, "floor_unix_ms": int}],
    },
    **{f"approvals key-{word}": _KEYS for word in ("init", "status", "rotate", "recover", "revoke", "retire")},
    "invoke": _ANSWER,
    "invoke describe": {
        **_INVOKED,
        **dict.fromkeys(("description", "effect", "schema"), str),
        "input_schema": {...: object},
    },
    "invoke fields": _SHAPED,
    "invoke each": ({"records": int, "missing?": NAMES, "request_id?": str}, _ANSWER),
    "invoke walk": {
        "complete": bool,
        "out": str,
        **dict.fromkeys(("pages", "records"), int),
        **dict.fromkeys(("end?", "stopped?"), str),
        "missing?": NAMES,
        "status?": int,
        "error?": {"code": str, "data": {...: object}},
        "resume?": {...: object},
    },
}
