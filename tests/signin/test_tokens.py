"""What a provider answers is foreign: a token endpoint, a device, an ID token, an account."""

import dataclasses
import json
import logging
from base64 import urlsafe_b64encode
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from signin.provider import Reply, provider

from headwater import clock
from headwater.connect.envelope import Account, Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Probed
from headwater.manifest.auth import Field, Identity, Method, OAuth
from headwater.manifest.pointers import at
from headwater.outbound import id_token
from headwater.outbound.authenticating import Declared
from headwater.outbound.client import Client, Reach
from headwater.outbound.tokens import envelope
from headwater.secret import Secret

pytestmark = pytest.mark.anyio
GRANT = Method(
    "oauth",
    "Sign in",
    "oauth",
    scheme="oauth2_grant",
    oauth=OAuth("/token", device_authorization_url="/device", client_id="c"),
)
CLIENT = replace(GRANT, scheme="oauth2_client_credentials", oauth=OAuth("/token", requested_scopes=("b", "a")))
CLIENT_FIELDS = {"client_id": Secret("sentinel id"), "client_secret": Secret("sentinel:secret/%")}
TOKEN = Method(
    "token",
    "Token",
    "token",
    (Field("token", "Token", "token", required=True),),
    scheme="token",
    identity=Identity("api", "user", "/me", "/user/id", "/user/name"),
)
BASIC = replace(TOKEN, scheme="basic", fields=(Field("account", "A", "text", required=True), *TOKEN.fields))
GOOD = {"access_token": "t", "token_type": "bearer"}


def declared(url: str) -> Declared:
    return Declared(Client(Reach(private=True)), url, "instance-1")


async def failing(work) -> tuple[str, int | None]:
    with pytest.raises(AuthFailure) as caught:
        await work
    return caught.value.code, caught.value.retry_after


class TestEnvelope:
    @pytest.mark.clause("INT-240")
    def test_a_token_alone_is_enough(self):
        got = envelope(GOOD, None)
        assert (got.access_token, got.expires_at, got.refresh_token, got.scopes) == (Secret("t"), None, None, None)

    @pytest.mark.clause("INT-240", "INT-241")
    @pytest.mark.parametrize(
        "members",
        [
            {"access_token": ""},
            {"access_token": None},
            {"access_token": 7},
            {"access_token": "x" * (1 << 20)},
            {"access_token": "a\nb"},
            {"access_token": " a"},
            {"access_token": "é"},
            {"token_type": "mac"},
            {"token_type": None},
            {"expires_in": "soon"},
            {"expires_in": -1},
            {"expires_in": True},
            {"expires_in": float("nan")},
            {"expires_in": 1e30},
            {"expires_in": [1]},
            {"refresh_token": 7},
            {"refresh_token": "x" * (1 << 20)},
            {"scope": 7},
            {"scope": ["a"]},
        ],
    )
    def test_what_does_not_fit_is_refused(self, members):
        with pytest.raises(AuthFailure) as caught:
            envelope({**GOOD, **members}, None)
        assert caught.value.code == "provider_protocol_error"

    def test_times_and_scopes(self):
        got = envelope({**GOOD, "expires_in": "300", "scope": "b a b"}, ("x",))
        assert abs(got.expires_at - clock.now() - timedelta(seconds=300)) < timedelta(seconds=5)
        assert got.scopes == ("a", "b")
        assert envelope({**GOOD, "scope": "repo,read:user"}, None).scopes == ("read:user", "repo")
        assert envelope(GOOD, ("x",)).scopes == ("x",)

    @given(
        st.dictionaries(
            st.sampled_from(["access_token", "token_type", "expires_in", "refresh_token", "scope"]),
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
        )
    )
    def test_whatever_comes_is_a_credential_or_a_refusal(self, document):
        try:
            got = envelope(document, None)
        except AuthFailure as failure:
            assert failure.code == "provider_protocol_error"  # noqa: PT017
        else:
            assert len(got.access_token) > 0


class TestEndpoint:
    @pytest.mark.parametrize(
        ("reply", "code"),
        [
            (Reply(400, {"error": "invalid_client"}), "credential_invalid"),
            (Reply(401, b""), "credential_invalid"),
            (Reply(400, {"error": "invalid_grant"}), "credential_invalid"),
            (Reply(400, {"error": "invalid_scope"}), "insufficient_scope"),
            (Reply(400, {"error": "temporarily_unavailable"}), "provider_unavailable"),
            (Reply(400, {"error": "sentinel"}), "provider_protocol_error"),
            (Reply(400, b"sentinel"), "provider_protocol_error"),
            (Reply(400, {"error": ["sentinel"]}), "provider_protocol_error"),
            (Reply(503, b"sentinel"), "provider_unavailable"),
            (Reply(429, b"sentinel"), "provider_rate_limited"),
            (Reply(302, headers={"Location": "https://x.example/"}), "provider_protocol_error"),
            (Reply(200, b"<html>sentinel"), "provider_protocol_error"),
            (Reply(200, b"[" * 100_000), "provider_protocol_error"),
            (Reply(200, ["sentinel"]), "provider_protocol_error"),
            (Reply(200, {"error": "invalid_client"}), "credential_invalid"),
            (Reply(200, {"error": "sentinel"}), "provider_protocol_error"),
            (Reply(200, {**GOOD, "refresh_token": "r"}), "provider_protocol_error"),
            (Reply(200, GOOD, cut=True), "exchange_unknown"),
        ],
    )
    async def test_every_answer_means_one_thing_and_is_not_repeated(self, reply, code, caplog):
        caplog.set_level(logging.DEBUG)
        with provider(lambda asked: reply) as running:
            assert (await failing(declared(running.url).start(CLIENT, CLIENT_FIELDS)))[0] == code
        assert len(running.asked) == 1
        assert "sentinel" not in caplog.text

    async def test_a_provider_that_is_not_there_was_sent_nothing(self):
        with provider(lambda asked: Reply()) as gone:
            pass
        assert await failing(declared(gone.url).start(CLIENT, CLIENT_FIELDS)) == ("provider_unavailable", None)

    async def test_a_client_proves_itself_as_the_standard_says(self):
        with provider(lambda asked: Reply(body=GOOD)) as running:
            got = await declared(running.url).start(CLIENT, CLIENT_FIELDS)
        (asked,) = running.asked
        assert asked.headers["authorization"] == "Basic c2VudGluZWwlMjBpZDpzZW50aW5lbCUzQXNlY3JldCUyRiUyNQ=="
        assert asked.form == {"grant_type": "client_credentials", "scope": "a b"}
        assert timedelta(hours=23) < got.expires_at - clock.now() <= timedelta(hours=24)

    async def test_a_client_proves_itself_in_the_form_where_that_is_declared(self):
        in_form = replace(CLIENT, oauth=replace(CLIENT.oauth, client_authentication="post"))
        with provider(lambda asked: Reply(body=GOOD)) as running:
            await declared(running.url).start(in_form, CLIENT_FIELDS)
        (asked,) = running.asked
        assert "authorization" not in asked.headers
        proof = {name: value.text() for name, value in CLIENT_FIELDS.items()}
        assert asked.form == {"grant_type": "client_credentials", "scope": "a b", **proof}


SAID = {"device_code": "d", "user_code": "U-1", "verification_uri": "https://x.example/", "expires_in": 60}


class TestDevice:
    @pytest.mark.clause("INT-194")
    @pytest.mark.parametrize(("members", "seconds"), [({}, 5), ({"interval": 2}, 2), ({"interval": 9999}, 9999)])
    async def test_a_provider_says_how_often_it_is_asked(self, members, seconds):
        with provider(lambda asked: Reply(body={**SAID, **members})) as running:
            assert (await declared(running.url).start(GRANT, {})).interval_seconds == seconds

    @pytest.mark.parametrize(
        "members",
        [
            {"device_code": 7},
            {"user_code": ""},
            {"user_code": "U\x1b[31m"},
            {"user_code": "U 1"},
            {"verification_uri": "javascript:alert(1)"},
            {"verification_uri": "https://x.example/" + "x" * 4000},
            {"expires_in": 0},
            {"expires_in": "60"},
            {"interval": -1},
            {"interval": True},
        ],
    )
    async def test_what_cannot_be_shown_or_counted_is_refused(self, members):
        with provider(lambda asked: Reply(body={**SAID, **members})) as running:
            assert (await failing(declared(running.url).start(GRANT, {})))[0] == "provider_protocol_error"

    @pytest.mark.clause("INT-194")
    @pytest.mark.parametrize(
        ("reply", "then"),
        [
            (Reply(400, {"error": "authorization_pending"}), None),
            (Reply(200, {"error": "authorization_pending"}), None),
            (Reply(400, {"error": "slow_down"}), 10),
            (Reply(503), 10),
            (Reply(429), 10),
            (Reply(400, {"error": "expired_token"}), "auth_state_expired"),
            (Reply(400, {"error": "access_denied"}), "challenge_failed"),
            (Reply(cut=True), "exchange_unknown"),
        ],
    )
    async def test_every_answer_to_a_poll_means_one_thing(self, reply, then):
        with provider(lambda asked: Reply(body=SAID)) as running:
            how = declared(running.url)
            challenge = await how.start(GRANT, {})
            running.answer = lambda asked: reply
            if isinstance(then, str):
                assert (await failing(how.complete(GRANT, {}, challenge, {})))[0] == then
            else:
                got = await how.complete(GRANT, {}, challenge, {})
                assert (got and got.interval_seconds) == then


NOW = clock.now()
EXPECTED = id_token.Expected("c", "https://idp.example/token", NOW, nonce="n")
CLAIMS = {
    "iss": "https://idp.example",
    "aud": "c",
    "sub": "ada",
    "iat": int(NOW.timestamp()),
    "exp": int(NOW.timestamp()) + 300,
    "nonce": "n",
}


def written(claims: object) -> str:
    body = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2lnbmF0dXJl"


class TestIdToken:
    @pytest.mark.parametrize(
        "members",
        [
            {},
            {"aud": ["c"]},
            {"aud": ["c", "d"], "azp": "c"},
            {"iat": CLAIMS["iat"] - 290},
            {"iat": CLAIMS["iat"] + 290},
        ],
    )
    def test_one_for_us_of_now_names_the_account(self, members):
        assert id_token.subject(written({**CLAIMS, **members}), EXPECTED) == "ada"

    @pytest.mark.parametrize(
        "members",
        [
            {"iss": "https://other.example"},
            {"iss": "http://idp.example"},
            {"iss": None},
            {"aud": "d"},
            {"aud": ["c", "d"]},
            {"aud": []},
            {"sub": ""},
            {"sub": 7},
            {"sub": "x" * 256},
            {"sub": "a\nb"},
            {"nonce": "m"},
            {"nonce": None},
            {"iat": CLAIMS["iat"] - 310},
            {"iat": CLAIMS["iat"] + 310},
            {"iat": True},
            {"iat": "now"},
            {"exp": CLAIMS["iat"] - 310},
            {"exp": None},
        ],
    )
    def test_any_other_is_refused(self, members):
        with pytest.raises(AuthFailure):
            id_token.subject(written({**CLAIMS, **members}), EXPECTED)

    @pytest.mark.parametrize("token", [None, 7, "", "a.b", "a.b.c.d", "a.!.c", written([]), written("x"), "e30.W1s.x"])
    def test_what_is_no_token_is_refused(self, token):
        with pytest.raises(AuthFailure):
            id_token.subject(token, EXPECTED)

    def test_the_issuer_that_is_declared_counts_alone(self):
        elsewhere = dataclasses.replace(EXPECTED, issuer="https://accounts.example")
        assert id_token.subject(written({**CLAIMS, "iss": "https://accounts.example"}), elsewhere) == "ada"
        with pytest.raises(AuthFailure):
            id_token.subject(written(CLAIMS), elsewhere)


class TestProbe:
    @pytest.mark.clause("INT-191")
    @pytest.mark.parametrize(
        ("method", "fields", "header"),
        [
            (TOKEN, {}, ("authorization", "Bearer sentinel")),
            (replace(TOKEN, prefix=""), {}, ("authorization", "sentinel")),
            (replace(TOKEN, header="X-Api-Key", prefix=""), {}, ("x-api-key", "sentinel")),
            (BASIC, {"account": Secret("me")}, ("authorization", "Basic bWU6c2VudGluZWw=")),
        ],
    )
    async def test_a_credential_is_sent_as_it_is_declared(self, method, fields, header):
        with provider(lambda asked: Reply(body={"user": {"id": 7, "name": "Me"}})) as running:
            probed = await declared(running.url + "/api/").probe(
                method, Credential(Envelope(Secret("sentinel")), fields)
            )
        assert probed == Probed(Account("7", "user", "Me"))
        assert running.asked[0].path == "/api/me"
        assert running.asked[0].headers[header[0]] == header[1]

    @pytest.mark.clause("CLI-362")
    async def test_nothing_is_trimmed_on_the_way(self):
        with provider(lambda asked: Reply(body={"user": {"id": 7}})) as running:
            credential = Credential(Envelope(Secret(" a ")), {"account": Secret("me")})
            await declared(running.url).probe(BASIC, credential)
        assert running.asked[0].headers["authorization"] == "Basic bWU6IGEg"

    @pytest.mark.clause("INT-191")
    @pytest.mark.parametrize(
        ("reply", "failure"),
        [
            (Reply(401), ("credential_invalid", None)),
            (Reply(403), ("insufficient_scope", None)),
            (Reply(429, headers={"Retry-After": "7"}), ("provider_rate_limited", 7)),
            (Reply(500), ("provider_unavailable", None)),
            (Reply(404), ("provider_protocol_error", None)),
            (Reply(302), ("provider_protocol_error", None)),
            (Reply(body={}), ("provider_protocol_error", None)),
            (Reply(body={"user": {"id": None}}), ("provider_protocol_error", None)),
            (Reply(body={"user": {"id": True}}), ("provider_protocol_error", None)),
            (Reply(body={"user": {"id": ""}}), ("provider_protocol_error", None)),
            (Reply(body={"user": {"id": "a\nb"}}), ("provider_protocol_error", None)),
            (Reply(body=b"sentinel"), ("provider_protocol_error", None)),
        ],
    )
    async def test_every_answer_means_one_thing(self, reply, failure, caplog):
        caplog.set_level(logging.DEBUG)
        with provider(lambda asked: reply) as running:
            work = declared(running.url).probe(TOKEN, Credential(Envelope(Secret("sentinel"))))
            assert await failing(work) == failure
        assert "sentinel" not in caplog.text

    @pytest.mark.parametrize("token", ["", " a", "a ", "a\nb", "é", "x" * 8193])
    async def test_what_a_header_cannot_carry_is_not_sent(self, token):
        with provider(lambda asked: Reply(body={"user": {"id": 7}})) as running:
            work = declared(running.url).start(TOKEN, {"token": Secret(token)})
            assert (await failing(work))[0] == "credential_invalid"
        assert running.asked == []

    async def test_a_configured_identity_is_the_instance(self):
        method = replace(TOKEN, identity=Identity("configuration", "instance", "/ping"))
        with provider(lambda asked: Reply(body={})) as running:
            probed = await declared(running.url).probe(method, Credential(Envelope(Secret("x"))))
        assert probed.account == Account("instance-1", "instance")

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
        ),
        st.text(max_size=12),
    )
    def test_a_pointer_finds_something_or_nothing(self, document, pointer):
        at(document, f"/{pointer}")
