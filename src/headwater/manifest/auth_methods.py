"""The auth methods of an integration's manifest: four flows, six types of fields, and how the host may do it itself."""

import re
from typing import Any, Final, get_args
from urllib.parse import urlsplit

from headwater import limits
from headwater.manifest.auth import (
    EVIDENCE_LIFETIME_MS,
    ClientAuthentication,
    Field,
    FieldType,
    Flow,
    Identity,
    Method,
    OAuth,
    Scheme,
)
from headwater.manifest.faults import Reader
from headwater.manifest.patterns import pattern_fault
from headwater.manifest.pointers import is_pointer

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SNAKE: Final = "must be snake_case, such as access_token"
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]{0,32}")
_FLOW_OF: Final = {"token": "token", "basic": "token", "oauth2_grant": "oauth", "oauth2_client_credentials": "oauth"}
_METHOD: Final = frozenset(
    ["key", "label", "flow", "fields", "scheme", "header", "prefix", "identity", "oauth", "evidenceLifetimeMs"]
)
_FIELD: Final = frozenset(["name", "label", "type", "required", "minLength", "pattern", "message"])
_IDENTITY: Final = frozenset(["source", "kind", "path", "subject", "display"])
_NOT_IN_PATH: Final = frozenset("#\\ ")
_URLS: Final = {
    "tokenUrl": "token_url",
    "authorizeUrl": "authorize_url",
    "deviceAuthorizationUrl": "device_authorization_url",
    "revocationUrl": "revocation_url",
    "issuer": "issuer",
}
_OAUTH: Final = frozenset(
    {*_URLS, "clientId", "confidential", "clientAuthentication", "requestedScopes", "minimumScopes"}
)


def read_methods(reader: Reader, root: dict[str, Any]) -> dict[str, Method]:
    """Read `auth.methods`, in their order; faults go to the reader."""
    auth = reader.table(root, "auth", required=True)
    found: dict[str, Method] = {}
    with reader.at("auth"):
        reader.no_others(auth, frozenset({"methods"}))
        if not auth.get("methods") and auth:
            with reader.at("methods"):
                reader.fault("required", "must hold at least one method")
        for row in reader.rows(auth, "methods"):
            method = _method(reader, row)
            if method.key in found:
                with reader.at("key"):
                    reader.fault("repeated", "is the key of another method too")
            found[method.key] = method
    if len(found) > limits.AUTH_METHODS:
        reader.fault("size", f"has more than {limits.AUTH_METHODS} methods")
    return found


def _method(reader: Reader, row: dict[str, Any]) -> Method:
    reader.no_others(row, _METHOD)
    flow: Flow = reader.choice(row, "flow", get_args(Flow), required=True) or "token"  # type: ignore[assignment]
    scheme: Scheme = reader.choice(row, "scheme", get_args(Scheme)) or "hooks"  # type: ignore[assignment]
    fields = tuple(_field(reader, field) for field in reader.rows(row, "fields"))
    _check_names(reader, fields)
    if _FLOW_OF.get(scheme, flow) != flow:
        with reader.at("scheme"):
            reader.fault("flow", f"belongs to the flow {_FLOW_OF[scheme]}")
    _check_entry(reader, scheme, fields)
    return Method(
        key=reader.shaped(row, "key", _NAME, _SNAKE),
        label=reader.plain(row, "label", limits.LABEL_CHARACTERS),
        flow=flow,
        fields=fields,
        scheme=scheme,
        header=_header(reader, row),
        prefix=_prefix(reader, row),
        identity=_identity(reader, row, scheme),
        oauth=_oauth(reader, row, scheme),
        evidence_lifetime_ms=_lifetime(reader, row),
    )


def _check_names(reader: Reader, fields: tuple[Field, ...]) -> None:
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        with reader.at("fields"):
            reader.fault("repeated", "holds two fields of one name")
    if len(names) > limits.AUTH_FIELDS:
        with reader.at("fields"):
            reader.fault("size", f"holds more than {limits.AUTH_FIELDS} fields")


def _check_entry(reader: Reader, scheme: Scheme, fields: tuple[Field, ...]) -> None:
    """Hold a scheme that the host does itself to the fields that it sends."""
    secrets = sum(field.is_secret and field.required for field in fields)
    others = sum(not field.is_secret and field.required for field in fields)
    fits = {
        "token": len(fields) == 1 and secrets == 1,
        "basic": len(fields) == 2 and secrets == 1 and others == 1,
        "oauth2_grant": not fields,
        "oauth2_client_credentials": not fields,
    }
    if not fits.get(scheme, True):
        with reader.at("fields"):
            wanted = {
                "token": "one required field of type token or password",
                "basic": "two required fields: a name and a secret",
            }
            reader.fault("entry", f"must hold {wanted.get(scheme, 'nothing with this scheme')}")


def _field(reader: Reader, row: dict[str, Any]) -> Field:
    reader.no_others(row, _FIELD)
    kind: FieldType = reader.choice(row, "type", get_args(FieldType), required=True) or "text"  # type: ignore[assignment]
    least = row.get("minLength")
    if least is not None and (type(least) is not int or not 1 <= least <= limits.AUTH_FIELD_CHARACTERS):
        with reader.at("minLength"):
            reader.fault("type", "must be a positive integer")
        least = None
    pattern = reader.text(row, "pattern")
    if pattern is not None and (why := pattern_fault(pattern)):
        with reader.at("pattern"):
            reader.fault("pattern", why)
        pattern = None
    message = reader.plain(row, "message", limits.LABEL_CHARACTERS) if "message" in row else None
    required = bool(reader.flag(row, "required"))
    name, label = reader.shaped(row, "name", _NAME, _SNAKE), reader.plain(row, "label", limits.LABEL_CHARACTERS)
    return Field(name, label, kind, required, least, pattern, message)


def _identity(reader: Reader, row: dict[str, Any], scheme: Scheme) -> Identity | None:
    if "identity" not in row and scheme == "hooks":
        return None
    holder = reader.table(row, "identity", required=True)
    with reader.at("identity"):
        reader.no_others(holder, _IDENTITY)
        source = reader.choice(holder, "source", ("api", "id_token", "configuration"), required=True) or "api"
        path = reader.text(holder, "path", required=source != "id_token") or ""
        subject = _pointer(reader, holder, "subject", required=source == "api")
        display = _pointer(reader, holder, "display", required=False)
        if "://" in path or not _NOT_IN_PATH.isdisjoint(path) or ".." in path.split("/"):
            with reader.at("path"):
                reader.fault("path", "must be a path below the endpoint")
        kind = reader.text(holder, "kind", required=True) or ""
    return Identity(source, kind, path, subject, display)  # type: ignore[arg-type]


def _pointer(reader: Reader, row: dict[str, Any], name: str, *, required: bool) -> str:
    pointer = reader.text(row, name, required=required) or ""
    if pointer and not is_pointer(pointer):
        with reader.at(name):
            reader.fault("pointer", "must be a JSON pointer, such as /user/id")
    return pointer


def _oauth(reader: Reader, row: dict[str, Any], scheme: Scheme) -> OAuth | None:
    if not scheme.startswith("oauth2"):
        if "oauth" in row:
            with reader.at("oauth"):
                reader.fault("scheme", "stands without a scheme of OAuth 2")
        return None
    holder = reader.table(row, "oauth", required=True)
    with reader.at("oauth"):
        reader.no_others(holder, _OAUTH)
        urls = {name: _url(reader, holder, member) for member, name in _URLS.items()}
        if scheme == "oauth2_grant" and not (urls["authorize_url"] or urls["device_authorization_url"]):
            reader.fault("required", "needs authorizeUrl or deviceAuthorizationUrl")
        minimum = reader.names(holder, "minimumScopes") or ()
        requested = reader.names(holder, "requestedScopes") or ()
        if not set(minimum) <= set(requested):
            with reader.at("minimumScopes"):
                reader.fault("scopes", "holds a scope that is not requested")
        confidential = bool(reader.flag(holder, "confidential"))
        has_secret = confidential or scheme == "oauth2_client_credentials"
        return OAuth(
            token_url=urls["token_url"] or "",
            authorize_url=urls["authorize_url"],
            device_authorization_url=urls["device_authorization_url"],
            revocation_url=urls["revocation_url"],
            client_id=reader.text(holder, "clientId"),
            confidential=confidential,
            requested_scopes=requested,
            minimum_scopes=minimum,
            issuer=urls["issuer"],
            client_authentication=_client_authentication(reader, holder, has_secret=has_secret),
        )


def _client_authentication(reader: Reader, holder: dict[str, Any], *, has_secret: bool) -> ClientAuthentication:
    said = reader.choice(holder, "clientAuthentication", get_args(ClientAuthentication))
    if said is not None and not has_secret:
        with reader.at("clientAuthentication"):
            reader.fault("confidential", "stands without a secret that could be sent")
    return said or "basic"  # type: ignore[return-value]


def _url(reader: Reader, holder: dict[str, Any], member: str) -> str | None:
    """Read an address: absolute over https, or a path below the instance's endpoint."""
    value = reader.text(holder, member, required=member == "tokenUrl")
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        usable = not (parts.fragment or parts.username or parts.password) and value.isascii() and value.isprintable()
        fits = usable and (
            (parts.scheme == "https" and bool(parts.hostname)) or (value.startswith("/") and not parts.netloc)
        )
    except ValueError:
        fits = False
    if not fits:
        with reader.at(member):
            reader.fault("url", "must be an https address, or a path that begins with / below the endpoint")
    return value


def _lifetime(reader: Reader, row: dict[str, Any]) -> int:
    value = row.get("evidenceLifetimeMs", EVIDENCE_LIFETIME_MS)
    if type(value) is int and 1_000 <= value <= limits.EVIDENCE_LIFETIME_MAX_MS:
        return value
    with reader.at("evidenceLifetimeMs"):
        reader.fault("type", f"must be an integer from 1000 to {limits.EVIDENCE_LIFETIME_MAX_MS}")
    return EVIDENCE_LIFETIME_MS


def _prefix(reader: Reader, row: dict[str, Any]) -> str:
    """Read what stands before a token in its header; empty where nothing does."""
    value = row.get("prefix", "Bearer")
    if isinstance(value, str) and _PREFIX.fullmatch(value):
        return value
    with reader.at("prefix"):
        reader.fault("shape", "must be one word, or empty")
    return ""


def _header(reader: Reader, row: dict[str, Any]) -> str:
    value = reader.text(row, "header") or "Authorization"
    if not _HEADER.fullmatch(value):
        with reader.at("header"):
            reader.fault("shape", "must be the name of a header")
    return value
