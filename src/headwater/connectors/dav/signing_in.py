"""Signing in by a user name and an app password: the pair is the credential, and the principal is the account."""

import base64
from collections.abc import Mapping
from urllib.parse import urlsplit

from headwater.connectors.dav.account import prop
from headwater.connectors.dav.xml import DAV, GarbledError, multistatus
from headwater.sdk.integration import Account, Context, Envelope, Refused

_PRINCIPAL = DAV + "current-user-principal"


def pair(fields: Mapping[str, str]) -> Envelope:
    """Return the credential of a name and a password (RFC 7617)."""
    written = base64.b64encode(f"{fields['username']}:{fields['password']}".encode()).decode()
    return Envelope(access_token=written, token_type="Basic")  # noqa: S106 - the name of a scheme


def principal(ctx: Context, kind: str) -> Account:
    """Ask the endpoint who this is (RFC 5397). Its path is what the server calls the account."""
    if ctx.credential is None:
        raise Refused("credential_invalid")
    answer = ctx.http.request(
        "PROPFIND",
        "/",
        headers={
            "authorization": f"Basic {ctx.credential.access_token}",
            "content-type": "application/xml; charset=utf-8",
            "depth": "0",
        },
        content=f'<propfind xmlns="DAV:">{prop((_PRINCIPAL,))}</propfind>'.encode(),
    )
    try:
        found = multistatus(answer.accepted().body, f"{ctx.provider.endpoint.rstrip('/')}/")
    except GarbledError:
        raise Refused("provider_protocol_error") from None
    for resource in found.resources:
        for url in resource.hrefs(_PRINCIPAL):
            return Account(urlsplit(url).path, kind)
    # A server may answer somebody without a name, as one that refuses nobody at this place does.
    raise Refused("credential_invalid")
