"""The grants of OAuth 2, against the certified OpenID provider."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest
from msgspec import structs
from servers.oidc import Browser, OpenIdProvider

from headwater import clock
from headwater.connect.envelope import Account, Credential
from headwater.connect.failures import AuthFailure
from headwater.manifest.auth import Identity, Method, OAuth
from headwater.outbound.authenticating import Declared
from headwater.outbound.client import Client, Reach
from headwater.outbound.loopback import Loopback
from headwater.secret import Secret

pytestmark = pytest.mark.anyio
SCOPES = ("archive.read", "offline_access", "openid")


def method(provider: OpenIdProvider, client: str = "public-300", **members) -> Method:
    oauth = OAuth(
        token_url=f"{provider.issuer}/token",
        authorize_url=f"{provider.issuer}/auth?prompt=consent",
        device_authorization_url=f"{provider.issuer}/device/auth",
        revocation_url=f"{provider.issuer}/token/revocation",
        client_id=client,
        confidential=not client.startswith("public"),
        client_authentication="post" if client.startswith("post") else "basic",
        requested_scopes=SCOPES,
        minimum_scopes=("archive.read",),
    )
    identity = Identity("id_token", "person", "/me")
    return Method(
        "oauth", "Sign in", "oauth", scheme="oauth2_grant", identity=identity, oauth=structs.replace(oauth, **members)
    )


def declared(provider: OpenIdProvider) -> Declared:
    return Declared(Client(Reach(private=True)), provider.issuer, "instance-1")


def fields(provider: OpenIdProvider, client: str) -> dict[str, Secret]:
    return {} if client.startswith("public") else {"client_secret": Secret(provider.secret(client))}


def browse(url: str, account: str, *, approves: bool = True) -> str:
    """Consent in a browser, and open what it is sent to."""
    back = Browser(account, approves=approves).sign_in(url)
    with build_opener(ProxyHandler({})).open(back, timeout=20) as page:
        return page.read().decode()


async def signed_in(provider, client="public-300", account="ada", *, approves=True, spoil=None, using=None):
    how, given, asked = using or declared(provider), fields(provider, client), method(provider, client)
    async with asyncio.timeout(60), Loopback.listening() as loopback:
        challenge = await how.start(asked, given, loopback.redirect_uri)
        browsing = asyncio.create_task(asyncio.to_thread(browse, challenge.url, account, approves=approves))
        answer = await loopback.parameters(Secret(challenge.upstream["state"]))
        page = await browsing
    assert "close this page" in page
    if spoil is not None:
        challenge, answer = spoil(challenge, dict(answer))
    return await how.complete(asked, given, challenge, answer)


class TestBrowser:
    @pytest.mark.clause("INT-194", "CLI-387")
    @pytest.mark.parametrize("client", ["public-300", "basic-300", "post-300"])
    async def test_consent_in_a_browser_gives_a_credential_and_its_account(self, oidc_provider, client):
        before = clock.now()
        envelope = await signed_in(oidc_provider, client)
        assert envelope.account == Account("ada", "person")
        assert envelope.scopes == SCOPES
        assert envelope.refresh_token is not None
        assert abs(envelope.expires_at - before - timedelta(seconds=300)) < timedelta(seconds=10)
        probed = await declared(oidc_provider).probe(method(oidc_provider, client), Credential(envelope))
        assert probed.account == envelope.account

    @pytest.mark.clause("INT-194")
    async def test_the_request_is_exact(self, oidc_provider):
        challenge = await declared(oidc_provider).start(method(oidc_provider), {}, "http://127.0.0.1:9/")
        query = dict(parse_qsl(urlsplit(challenge.url).query))
        assert {
            name: query[name] for name in ("response_type", "client_id", "redirect_uri", "code_challenge_method")
        } == {
            "response_type": "code",
            "client_id": "public-300",
            "redirect_uri": "http://127.0.0.1:9/",
            "code_challenge_method": "S256",
        }
        assert (query["prompt"], query["scope"]) == ("consent", " ".join(SCOPES))
        assert (len(query["state"]), len(query["code_challenge"])) == (43, 43)
        assert challenge.upstream["verifier"] not in challenge.url

    @pytest.mark.clause("INT-194")
    @pytest.mark.parametrize(
        ("spoil", "code"),
        [
            (lambda c, a: (c, {**a, "state": Secret("x" * 43)}), "auth_state_invalid"),
            (lambda c, a: (c, {"code": a["code"]}), "auth_state_invalid"),
            (lambda c, a: (replace(c, upstream={**c.upstream, "verifier": "v" * 43}), a), "challenge_failed"),
            (lambda c, a: (c, {**a, "code": Secret("guessed")}), "challenge_failed"),
            (
                lambda c, a: (replace(c, upstream={**c.upstream, "redirect_uri": "http://127.0.0.1:9/"}), a),
                "challenge_failed",
            ),
            (lambda c, a: (replace(c, upstream={**c.upstream, "nonce": "another"}), a), "provider_protocol_error"),
        ],
        ids=["state", "no state", "verifier", "code", "port", "nonce"],
    )
    async def test_what_was_altered_on_the_way_is_refused(self, oidc_provider, spoil, code):
        with pytest.raises(AuthFailure) as caught:
            await signed_in(oidc_provider, spoil=spoil)
        assert caught.value.code == code

    async def test_a_person_who_says_no_ends_the_sign_in(self, oidc_provider):
        with pytest.raises(AuthFailure) as caught:
            await signed_in(oidc_provider, approves=False)
        assert caught.value.code == "challenge_failed"

    @pytest.mark.parametrize("client", ["basic-300", "post-300"])
    async def test_a_wrong_client_secret_is_an_invalid_credential(self, oidc_provider, client):
        asked = method(oidc_provider, client)
        how, wrong = declared(oidc_provider), {"client_secret": Secret("wrong")}
        async with Loopback.listening() as loopback:
            challenge = await how.start(asked, wrong, loopback.redirect_uri)
            browsing = asyncio.create_task(asyncio.to_thread(browse, challenge.url, "ada"))
            answer = await loopback.parameters(Secret(challenge.upstream["state"]))
            await browsing
        with pytest.raises(AuthFailure) as caught:
            await how.complete(asked, wrong, challenge, answer)
        assert caught.value.code == "credential_invalid"


class TestDevice:
    @pytest.mark.clause("INT-194")
    async def test_consent_on_another_device_gives_a_credential(self, oidc_provider):
        how, asked = declared(oidc_provider), method(oidc_provider)
        challenge = await how.start(asked, {})
        assert challenge.kind == "device"
        assert challenge.url.startswith(oidc_provider.issuer)
        assert await how.complete(asked, {}, challenge, {}) is None
        page = f"{challenge.url}?user_code={challenge.user_code}"
        await asyncio.to_thread(Browser("ada").confirm_device, page)
        envelope = await how.complete(asked, {}, challenge, {})
        assert envelope.account == Account("ada", "person")

    @pytest.mark.clause("INT-194")
    async def test_a_person_who_says_no_ends_it(self, oidc_provider):
        how, asked = declared(oidc_provider), method(oidc_provider)
        challenge = await how.start(asked, {})
        page = f"{challenge.url}?user_code={challenge.user_code}"
        await asyncio.to_thread(Browser("ada", approves=False).confirm_device, page)
        with pytest.raises(AuthFailure) as caught:
            await how.complete(asked, {}, challenge, {})
        assert caught.value.code == "challenge_failed"


class TestRenewal:
    @pytest.mark.clause("INT-261")
    async def test_a_refresh_gives_another_token_and_the_same_account(self, oidc_provider):
        how, asked = declared(oidc_provider), method(oidc_provider)
        first = await signed_in(oidc_provider)
        second = await how.refresh(asked, Credential(first))
        assert second.access_token != first.access_token
        assert second.refresh_token != first.refresh_token
        assert (second.account, second.scopes) == (first.account, first.scopes)

    @pytest.mark.clause("INT-262")
    async def test_a_token_that_was_used_before_is_an_invalid_credential(self, oidc_provider):
        how, asked = declared(oidc_provider), method(oidc_provider)
        first = await signed_in(oidc_provider)
        second = await how.refresh(asked, Credential(first))
        for reused in (first, second):  # the second one ended with the first: the whole grant was revoked
            with pytest.raises(AuthFailure) as caught:
                await how.refresh(asked, Credential(reused))
            assert caught.value.code == "credential_invalid"

    @pytest.mark.parametrize("minutes", [-10, 10])
    async def test_a_clock_that_is_ten_minutes_off_does_not_matter(self, oidc_provider, monkeypatch, minutes):
        real = clock.now
        monkeypatch.setattr(clock, "now", lambda: real() + timedelta(minutes=minutes))
        envelope = await signed_in(oidc_provider)
        assert envelope.account == Account("ada", "person")
        assert abs(envelope.expires_at - clock.now() - timedelta(seconds=300)) < timedelta(seconds=10)

    async def test_a_grant_is_revoked_at_the_provider(self, oidc_provider):
        how, asked = declared(oidc_provider), method(oidc_provider)
        first = await signed_in(oidc_provider)
        assert await how.disconnect(asked, Credential(first))
        with pytest.raises(AuthFailure) as caught:
            await how.refresh(asked, Credential(first))
        assert caught.value.code == "credential_invalid"

    @pytest.mark.parametrize("client", ["basic-300", "post-300"])
    async def test_a_client_gets_a_token_of_its_own(self, oidc_provider, client):
        how, given = declared(oidc_provider), fields(oidc_provider, client)
        oauth = method(oidc_provider, client, requested_scopes=("archive.read",)).oauth
        asked = Method("client", "Client", "oauth", scheme="oauth2_client_credentials", oauth=oauth)
        first = await how.start(asked, given)
        assert (first.scopes, first.refresh_token) == (("archive.read",), None)
        second = await how.refresh(asked, Credential(first, given))
        assert second.access_token != first.access_token

    @pytest.mark.parametrize("client", ["basic-300", "post-300"])
    async def test_a_client_with_a_secret_renews_and_revokes_by_it(self, oidc_provider, client):
        how, asked, given = declared(oidc_provider), method(oidc_provider, client), fields(oidc_provider, client)
        first = Credential(await signed_in(oidc_provider, client), given)
        second = Credential(await how.refresh(asked, first), given)
        assert await how.disconnect(asked, second)
        with pytest.raises(AuthFailure) as caught:
            await how.refresh(asked, second)
        assert caught.value.code == "credential_invalid"
