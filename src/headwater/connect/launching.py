"""Whether a consumer may be started with the credential of a connection, and what it is handed (spec/002, launch).

Nothing is asked of a provider here: what was last checked of the connection counts, or the launch is refused.
"""

import json
from collections.abc import Sequence
from typing import Any

from headwater import clock
from headwater.connect.admission import admit_use
from headwater.connect.entries import is_static
from headwater.connect.envelope import Credential
from headwater.connect.lifetime import has_expired
from headwater.connect.model import Connection, Target
from headwater.connect.refusals import needs_reconnect
from headwater.connect.state import is_fresh, needs_another_credential
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.auth import Method
from headwater.secret import Secret

_SAFE = "Nothing was started."


def admit_consumer(permitted: Sequence[str], target: Target, profile: str | None) -> None:
    """Refuse a consumer that is not let in to an instance by its alias, and a profile that is not permitted."""
    if target.alias not in permitted:
        message = "The configuration does not permit this consumer the credential of this instance."
        raise refuse("forbidden", message, safe=_SAFE)
    if profile is not None and target.permitted is not None and profile not in target.permitted:
        raise refuse("forbidden", "The configuration does not permit this way to sign in.", safe=_SAFE)


def admit_launch(connection: Connection, target: Target, now_ms: int) -> Method:
    """Return how a connection signs in, or refuse one that cannot be used now as it stands (CLI-856)."""
    standing = admit_use(connection, target, now_ms)
    if needs_another_credential(connection, now_ms):
        raise needs_reconnect()
    if standing == "other_executable" or not is_fresh(connection, now_ms):
        raise _lapsed(connection, target)
    method = target.method(connection.profile)
    assert method is not None, "a method that is not declared is admitted nowhere"
    return method


def document_of(connection: Connection, target: Target, method: Method, credential: Credential) -> Secret:
    """Return what a consumer reads: one JSON object of the fields that were entered for the profile.

    Where a sign-in exchanged them for a token, `access_token`, `token_type`, `expires_at` (RFC 3339) and `scopes` are
    there too, as far as they are known. What renews the token stays with the owner: it is good only once.
    """
    envelope = credential.envelope
    if has_expired(credential, clock.now()):
        raise _lapsed(connection, target)
    fields = {name: value.text() for name, value in credential.fields.items()}
    if is_static(method):
        return _written(fields)
    told: dict[str, Any] = {"access_token": envelope.access_token.text()}
    told |= {"token_type": envelope.token_type} if envelope.token_type else {}
    told |= {"expires_at": clock.text(envelope.expires_at)} if envelope.expires_at is not None else {}
    told |= {"scopes": list(envelope.scopes)} if envelope.scopes is not None else {}
    return _written({**told, **fields})


def _written(document: dict[str, Any]) -> Secret:
    return Secret(json.dumps(document, ensure_ascii=False))


def _lapsed(connection: Connection, target: Target) -> HeadwaterError:
    message = "What was last checked of the connection does not count any more."
    command = f"headwater connections revalidate {target.name} --expected-revision {connection.revision}"
    told: dict[str, Any] = {"stage": "readiness", "next_action": "revalidate_connection"}
    return refuse("unavailable", message, safe=_SAFE, command=command, **told)
