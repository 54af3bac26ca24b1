"""How a credential is sent, and what a provider's answer to it means."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from headwater import limits
from headwater.connect.envelope import Account, Credential
from headwater.connect.failures import AuthFailure, FailureCode
from headwater.connect.ports import Probed
from headwater.manifest.auth import Identity, Method
from headwater.manifest.pointers import at
from headwater.outbound.client import Answer, Client, Unanswered
from headwater.secret import Secret

_MEANINGS: Final[Mapping[int, FailureCode]] = {
    401: "credential_invalid",
    403: "insufficient_scope",
    429: "provider_rate_limited",
}


def sent(method: Method, credential: Credential) -> Mapping[str, str]:
    """Return the header that carries a credential, by the method's scheme."""
    token = credential.envelope.access_token
    if method.scheme == "basic":
        account = next(credential.fields[field.name] for field in method.fields if not field.is_secret)
        pair = b64encode(account.reveal() + b":" + token.reveal()).decode("ascii")
        return {"Authorization": f"Basic {pair}"}
    return {method.header: f"{method.prefix} {in_header(token)}".lstrip()}


def in_header(token: Secret) -> str:
    """Return a token as a header can carry it: printable ASCII, without a space at either end (RFC 9110 5.5)."""
    held = token.reveal()
    if not 1 <= len(held) <= limits.TOKEN_BYTES or held != held.strip() or not all(0x20 <= c < 0x7F for c in held):
        raise AuthFailure("credential_invalid")
    return held.decode("ascii")


async def read(client: Client, url: str, headers: Mapping[str, str]) -> Any:
    """Return the JSON that an address answers. Raise `AuthFailure` for every other answer, and for none."""
    try:
        answer = await client.get(url, headers)
    except Unanswered as error:
        raise AuthFailure(error.code) from None
    if answer.status != 200:
        raise refused(answer)
    return decoded(answer)


def refused(answer: Answer) -> AuthFailure:
    """Return what an answer without a result means. A redirect is not followed, and means nothing."""
    if 500 <= answer.status < 600:
        return AuthFailure("provider_unavailable", retry_after=answer.retry_after)
    return AuthFailure(_MEANINGS.get(answer.status, "provider_protocol_error"), retry_after=answer.retry_after)


def decoded(answer: Answer) -> Any:
    """Return the JSON of an answer; nothing of it is repeated where it is none."""
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        raise AuthFailure("provider_protocol_error") from None


async def probe(client: Client, endpoint: str, method: Method, credential: Credential, instance_id: str) -> Probed:
    """Ask a provider whose credential it is."""
    envelope, identity = credential.envelope, method.identity
    if identity is None:
        raise AuthFailure("provider_protocol_error")
    if identity.source == "id_token" and not identity.path:
        if envelope.account is None:
            raise AuthFailure("provider_protocol_error")
        return Probed(envelope.account, envelope.scopes, envelope.expires_at)
    said = await read(client, below(endpoint, identity.path), sent(method, credential))
    return Probed(_account(identity, said, instance_id), envelope.scopes, envelope.expires_at)


def below(endpoint: str, path: str) -> str:
    """Return an address below an instance's endpoint."""
    return f"{endpoint.rstrip('/')}/{path.lstrip('/')}"


def _account(identity: Identity, said: Any, instance_id: str) -> Account:
    if identity.source == "configuration":
        return Account(instance_id, identity.kind)
    pointer = identity.subject or "/sub"
    subject = _named(at(said, pointer))
    if not subject:
        raise AuthFailure("provider_protocol_error")
    return Account(subject, identity.kind, _named(at(said, identity.display)) if identity.display else "")


def _named(value: Any) -> str:
    """Return a name or a number as text; nothing for anything else, or for what no account is called."""
    if type(value) not in (str, int):
        return ""
    text = str(value)
    return text if len(text) <= limits.ACCOUNT_CHARACTERS and text.isprintable() else ""
