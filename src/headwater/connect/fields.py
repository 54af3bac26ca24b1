"""What a person enters to sign in: read from one document, checked against the method before anything leaves here."""

import re
from collections.abc import Mapping
from typing import Final

from headwater import limits
from headwater.connect.failures import AuthFailure
from headwater.errors import refuse
from headwater.manifest.auth import Field, FieldType, Method
from headwater.secret import Secret

_CLIENT_SECRET: Final = Field("client_secret", "Client secret", "password", required=True)
_CLIENT: Final = (Field("client_id", "Client id", "text", required=True), _CLIENT_SECRET)
_SHAPES: Final[Mapping[FieldType, re.Pattern[str]]] = {
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "tel": re.compile(r"\+?[0-9 ()./-]{3,32}"),
    "url": re.compile(r"https?://[^\s/]\S*"),
}


def entry_fields(method: Method) -> tuple[Field, ...]:
    """Return what is entered for a method: its fields, or what the client of OAuth 2 still lacks (CLI-371, CLI-372)."""
    oauth = method.oauth
    if oauth is None:
        return method.fields
    if method.scheme == "oauth2_client_credentials":
        return (_CLIENT_SECRET,) if oauth.client_id else _CLIENT
    return (_CLIENT_SECRET,) if oauth.confidential else ()


def has_device_grant(method: Method) -> bool:
    """Whether a person may consent on another device; an integration's own code says so when it is asked."""
    return method.flow == "oauth" and (method.oauth is None or method.oauth.device_authorization_url is not None)


def read_entry(method: Method, document: bytes | bytearray) -> Mapping[str, Secret]:
    """Read one JSON object that holds exactly the fields of a method, each a text that is taken as it is.

    Raise `invalid_input` for anything else, and say nothing of what was there (CLI-361, CLI-362).
    """
    members = _members(document)
    names = [field.name for field in entry_fields(method)]
    required = {field.name for field in entry_fields(method) if field.required}
    if members is None or not required <= members.keys() <= set(names):
        message = (
            f"The credential has to be one JSON object with these fields and no others: {', '.join(names) or 'none'}."
        )
        raise refuse(
            "invalid_input",
            message,
            stage="protected_entry",
            next_action="select_protected_source",
            safe="Nothing was sent anywhere.",
        )
    return {name: Secret(value) for name, value in members.items()}


def _members(document: bytes | bytearray) -> Mapping[str, str] | None:
    import jiter

    if len(document) > limits.ENTRY_BYTES:
        return None
    try:
        members = jiter.from_json(bytes(document), catch_duplicate_keys=True, cache_mode="none")
    except ValueError:
        return None
    if not isinstance(members, dict) or not all(isinstance(value, str) for value in members.values()):
        return None
    return members


def checked(method: Method, given: Mapping[str, Secret]) -> Mapping[str, Secret]:
    """Return the fields of a method where all of them fit. Raise `invalid_fields` with a sentence for each other.

    No sentence holds a value, and none a name that the method does not have (INT-172, INT-174, INT-175).
    """
    fields = entry_fields(method)
    faults = {field.name: fault for field in fields if (fault := _fault(field, given.get(field.name)))}
    if faults or given.keys() - {field.name for field in fields}:
        raise AuthFailure("invalid_fields", fields=faults)
    return given


def _fault(field: Field, value: Secret | None) -> str | None:
    """Return the sentence for a value that does not fit: the declared one, where there is one."""
    if value is None or len(value) == 0:
        return _said(field, "is needed") if field.required else None
    try:
        text = value.text()
    except ValueError:
        return _said(field, "is not text")
    if len(text) > limits.AUTH_FIELD_CHARACTERS:
        return _said(field, "is too long")
    if len(text) < (field.min_length or 0):
        return _said(field, f"has at least {field.min_length} characters")
    return None if _is_shaped(field, text) else _said(field, "does not have the form that is needed")


def _said(field: Field, why: str) -> str:
    return field.message or f"{field.label} {why}."


def _is_shaped(field: Field, text: str) -> bool:
    shape = _SHAPES.get(field.type)
    if shape is not None and not shape.fullmatch(text):
        return False
    if field.pattern is None:
        return True
    from headwater.manifest.patterns import matches

    return matches(field.pattern, text)


def kept(method: Method, fields: Mapping[str, Secret]) -> Mapping[str, Secret]:
    """Return the entered fields that are needed as long as the credential lives.

    A password or a code is exchanged for a credential and forgotten; what was entered for a token is the credential.
    """
    if method.flow in ("token", "oauth"):
        return fields
    secrets = {field.name for field in method.fields if field.is_secret}
    return {name: value for name, value in fields.items() if name not in secrets}
