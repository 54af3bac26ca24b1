"""What crosses the owner's socket: what is asked of an integration, and what it gave or why it did not.

It crosses between two processes of one user, and is kept by neither.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from headwater import clock, limits
from headwater.connect.envelope import Account, Credential, Envelope, opened, sealed
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge, Probed
from headwater.manifest.auth import Field
from headwater.secret import Secret

Told = dict[str, Any]


def of_secrets(fields: Mapping[str, Secret]) -> dict[str, str]:
    """Write fields."""
    return {name: value.text() for name, value in fields.items()}


def to_secrets(told: Mapping[str, str]) -> dict[str, Secret]:
    """Read fields."""
    return {name: Secret(value) for name, value in told.items()}


def of_credential(credential: Credential) -> str:
    """Write a credential."""
    return sealed(credential).text()


def to_credential(told: str) -> Credential:
    """Read a credential."""
    return opened(Secret(told))


def of_challenge(challenge: Challenge) -> Told:
    """Write what a person has to do."""
    moment = challenge.expires_at
    return {**msgspec.to_builtins(challenge), "expires_at": None if moment is None else clock.text(moment)}


def to_challenge(told: Mapping[str, Any]) -> Challenge:
    """Read what a person has to do."""
    fields = tuple(Field(**row) for row in told["fields"])
    moment = None if told["expires_at"] is None else clock.parse(told["expires_at"])
    return Challenge(**{**told, "fields": fields, "expires_at": moment})


def of_step(given: Challenge | Envelope | Probed | bool | None) -> Told:
    """Write what a step of a sign-in gave."""
    match given:
        case Challenge():
            return {"challenge": of_challenge(given)}
        case Envelope():
            return {"envelope": of_credential(Credential(given))}
        case Probed():
            until = given.valid_until
            scopes = None if given.scopes is None else list(given.scopes)
            shown = {"account": asdict(given.account), "scopes": scopes}
            return {"probed": {**shown, "valid_until": None if until is None else clock.text(until)}}
        case None:
            return {}
    return {"was": given}


def to_step(told: Mapping[str, Any]) -> Any:
    """Read what a step of a sign-in gave, or raise the `AuthFailure` that it ended with."""
    if "failure" in told:
        failure = told["failure"]
        raise AuthFailure(failure["code"], retry_after=failure["retry_after"], fields=failure["fields"])
    if "challenge" in told:
        return to_challenge(told["challenge"])
    if "envelope" in told:
        return to_credential(told["envelope"]).envelope
    if "probed" in told:
        probed = told["probed"]
        until = None if probed["valid_until"] is None else clock.parse(probed["valid_until"])
        scopes = None if probed["scopes"] is None else tuple(probed["scopes"])
        return Probed(Account(**probed["account"]), scopes, until)
    return told.get("was")


def of_result(given: Any) -> Told:
    """Write the result of an operation, as text: a number keeps its digits. Raise `AuthFailure` for what is no text."""
    try:
        text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
        size = len(text.encode())
    except ValueError:
        raise AuthFailure("provider_protocol_error") from None
    return {"too_large": True} if size > limits.RESULT_BYTES else {"result": text}


def of_failure(failure: AuthFailure) -> Told:
    """Write why a step gave nothing."""
    return {"failure": {"code": failure.code, "retry_after": failure.retry_after, "fields": failure.fields}}
