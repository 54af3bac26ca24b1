"""The grants of OAuth 2 that a method may declare: code with a browser, device, client credentials, and refresh."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from headwater import clock, limits
from headwater.connect.envelope import Account, Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge
from headwater.errors import refuse
from headwater.manifest.auth import Method, OAuth
from headwater.outbound import id_token, pkce
from headwater.outbound.client import Answer, Client, Unanswered
from headwater.outbound.probing import below, refused
from headwater.outbound.tokens import Party, Refused, envelope, exchange
from headwater.secret import Secret

_DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True)
class Grants:
    """Asks one provider. `client_id` is the host's, for a method that declares none."""

    client: Client
    endpoint: str
    client_id: str | None = None

    # A browser, or another device.

    def browser(self, method: Method, fields: Mapping[str, Secret], redirect_uri: str) -> Challenge:
        """Return the address to consent at, and what the answer has to meet (RFC 6749 4.1, RFC 7636, RFC 8252)."""
        oauth, verifier, state, nonce = _of(method), pkce.verifier(), clock.token(), clock.token()
        if oauth.authorize_url is None:
            raise AuthFailure("provider_protocol_error")
        query = {
            "response_type": "code",
            "client_id": self._party(method, fields).client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": pkce.challenge(verifier),
            "code_challenge_method": "S256",
            **({"scope": " ".join(scopes)} if (scopes := _requested(method)) else {}),
            **({"nonce": nonce} if _wants_id_token(method) else {}),
        }
        upstream = {"redirect_uri": redirect_uri, "state": state, "verifier": verifier, "nonce": nonce}
        return Challenge("redirect", url=_with(self._url(oauth.authorize_url), query), upstream=upstream)

    async def redirected(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge, answer: Mapping[str, Secret]
    ) -> Envelope:
        """Exchange the code that a browser brought back."""
        upstream = challenge.upstream
        if "state" not in answer or answer["state"] != Secret(upstream["state"]):
            raise AuthFailure("auth_state_invalid")
        if "code" not in answer:
            raise AuthFailure("challenge_failed")
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"].text(),
            "redirect_uri": upstream["redirect_uri"],
            "code_verifier": upstream["verifier"],
        }
        try:
            return await self._granted(method, fields, form, nonce=upstream["nonce"])
        except Refused as error:
            raise error.meaning("challenge_failed") from None

    async def device(self, method: Method, fields: Mapping[str, Secret]) -> Challenge:
        """Return what to type on another device (RFC 8628 3.2)."""
        oauth = _of(method)
        if oauth.device_authorization_url is None:
            raise AuthFailure("provider_protocol_error")
        form = {"scope": " ".join(scopes)} if (scopes := _requested(method)) else {}
        url = self._url(oauth.device_authorization_url)
        try:
            document, _ = await exchange(self.client, url, self._party(method, fields), form)
        except Refused as error:
            raise error.meaning("provider_protocol_error") from None
        return _device_challenge(document)

    async def polled(
        self, method: Method, fields: Mapping[str, Secret], challenge: Challenge
    ) -> Challenge | Envelope | None:
        """Ask whether the person has consented; a challenge with a longer interval where we asked too often."""
        form = {"grant_type": _DEVICE, "device_code": challenge.upstream["device_code"]}
        slower = replace(challenge, interval_seconds=challenge.interval_seconds + limits.DEVICE_SLOWER_SECONDS)
        try:
            return await self._granted(method, fields, form)
        except Refused as error:
            if error.error == "authorization_pending":
                return None
            if error.error == "slow_down":
                return slower
            raise error.meaning("auth_state_expired") from None
        except AuthFailure as failure:
            if failure.is_transient:
                return slower
            raise

    # Without a person.

    async def client_credentials(self, method: Method, fields: Mapping[str, Secret]) -> Envelope:
        """Get a token for the client itself (RFC 6749 4.4). It counts for a day at most, and never renews itself."""
        scopes = _requested(method)
        form = {"grant_type": "client_credentials", **({"scope": " ".join(scopes)} if scopes else {})}
        try:
            granted = await self._granted(method, fields, form)
        except Refused as error:
            raise error.meaning("credential_invalid") from None
        if granted.refresh_token is not None:
            raise AuthFailure("provider_protocol_error")
        latest = clock.now() + timedelta(seconds=limits.CLIENT_TOKEN_SECONDS)
        return granted if granted.expires_at else replace(granted, expires_at=latest)

    async def refreshed(self, method: Method, credential: Credential) -> Envelope:
        """Exchange a refresh token (RFC 6749 6). Where no other is answered, the old one stays good."""
        old = credential.envelope
        if old.refresh_token is None:
            raise AuthFailure("credential_invalid")
        form = {"grant_type": "refresh_token", "refresh_token": old.refresh_token.text()}
        try:
            new = await self._granted(method, credential.fields, form, scopes=old.scopes)
        except Refused as error:
            raise error.meaning("credential_invalid") from None
        return replace(new, refresh_token=new.refresh_token or old.refresh_token, account=new.account or old.account)

    async def revoked(self, method: Method, credential: Credential) -> bool:
        """Revoke at the provider (RFC 7009): the refresh token, and so the whole grant, where there is one."""
        oauth, held = _of(method), credential.envelope
        if oauth.revocation_url is None:
            return False
        hint, token = (
            ("refresh_token", held.refresh_token) if held.refresh_token else ("access_token", held.access_token)
        )
        form, headers = self._party(method, credential.fields).signed({"token": token.text(), "token_type_hint": hint})
        try:
            answer = await self.client.post(self._url(oauth.revocation_url), form, headers)
        except Unanswered as error:
            raise AuthFailure(error.code) from None
        if answer.status != 200:
            raise refused(answer)
        return True

    async def _granted(
        self,
        method: Method,
        fields: Mapping[str, Secret],
        form: Mapping[str, str],
        *,
        scopes: tuple[str, ...] | None = None,
        nonce: str | None = None,
    ) -> Envelope:
        party = self._party(method, fields)
        document, answer = await exchange(self.client, self._url(_of(method).token_url), party, form)
        granted = envelope(document, scopes or _of(method).requested_scopes or None)
        if not _wants_id_token(method):
            return granted
        return replace(granted, account=self._account(method, document, answer, party, nonce))

    def _account(
        self, method: Method, document: Mapping[str, Any], answer: Answer, party: Party, nonce: str | None
    ) -> Account | None:
        """Return the account that an ID token names; a refresh may come without one."""
        token = document.get("id_token")
        if token is None and nonce is None:
            return None
        oauth, identity = _of(method), method.identity
        assert identity is not None, "asked for by the identity"
        at = answer.date or clock.now()
        expected = id_token.Expected(party.client_id, self._url(oauth.token_url), at, oauth.issuer, nonce)
        return Account(id_token.subject(token, expected), identity.kind)

    def _party(self, method: Method, fields: Mapping[str, Secret]) -> Party:
        oauth = _of(method)
        named = fields["client_id"].text() if "client_id" in fields else oauth.client_id or self.client_id
        if not named:
            message = "Signing in here needs a client id: write `client_id` of the provider into collect.toml."
            raise refuse("invalid_configuration", message, safe="Nothing was sent.")
        return Party(named, fields.get("client_secret"), in_form=oauth.client_authentication == "post")

    def _url(self, url: str) -> str:
        return below(self.endpoint, url) if url.startswith("/") else url


def _of(method: Method) -> OAuth:
    if method.oauth is None:
        raise AuthFailure("provider_protocol_error")
    return method.oauth


def _wants_id_token(method: Method) -> bool:
    return method.identity is not None and method.identity.source == "id_token"


def _requested(method: Method) -> list[str]:
    return sorted({*_of(method).requested_scopes, *(["openid"] if _wants_id_token(method) else [])})


def _with(url: str, query: Mapping[str, str]) -> str:
    """Add to the query of an address; what is declared there stays, but says nothing of ours anew."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in query]
    return urlunsplit(parts._replace(query=urlencode([*kept, *query.items()])))


def _device_challenge(document: Mapping[str, Any]) -> Challenge:
    names = ("device_code", "user_code", "verification_uri")
    device_code, user_code, url = (document.get(name) for name in names)
    lifetime, interval = document.get("expires_in"), document.get("interval", limits.DEVICE_INTERVAL_SECONDS)
    texts = all(_is_shown(text) for text in (user_code, url)) and isinstance(device_code, str)
    counts = all(type(number) is int and number > 0 for number in (lifetime, interval))
    if not (texts and counts and str(url).startswith(("https://", "http://"))):
        raise AuthFailure("provider_protocol_error")
    return Challenge(
        "device",
        url=str(url),
        user_code=str(user_code),
        interval_seconds=int(interval),
        expires_at=_after(int(lifetime or 0)),
        upstream={"device_code": str(device_code)},
    )


def _after(seconds: int) -> datetime:
    return clock.now() + timedelta(seconds=min(seconds, limits.AUTH_STATE_SECONDS))


def _is_shown(text: object) -> bool:
    """Whether a provider's text may stand on a line of its own at a terminal."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= limits.SHOWN_CHARACTERS
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )
