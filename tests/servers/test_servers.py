"""The servers of the tests do what tests of sign-in and of connectors rely on."""

import base64
import hashlib
import json
import secrets
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from servers.oidc import Browser
from servers.synapse import Refused

_open = build_opener(ProxyHandler({})).open


def post(url, basic=None, **form):
    headers = {} if basic is None else {"Authorization": f"Basic {base64.b64encode(basic.encode()).decode()}"}
    try:
        with _open(Request(url, urlencode(form).encode(), headers)) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            return json.load(error)


def test_a_session_of_synapse_ends_with_its_log_out(synapse):
    user = synapse.register()
    other = synapse.log_in(user)
    room = user.make_room("Kitchen")
    user.send(room, "Tea?")
    assert other.call("GET", "/_matrix/client/v3/joined_rooms") == {"joined_rooms": [room]}
    other.log_out()
    with pytest.raises(Refused) as refused:
        other.call("GET", "/_matrix/client/v3/joined_rooms")
    assert refused.value.said["errcode"] == "M_UNKNOWN_TOKEN"


def authorization(provider, client="public-300", scope="openid offline_access archive.read"):
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    asked = {
        "client_id": client,
        "response_type": "code",
        "redirect_uri": "http://127.0.0.1:54321/callback",
        "scope": scope,
        "prompt": "consent",
        "state": "s",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return f"{provider.issuer}/auth?{urlencode(asked)}", verifier


def test_a_code_is_exchanged_and_a_refresh_token_rotates(oidc_provider):
    url, verifier = authorization(oidc_provider)
    back = Browser("ada").sign_in(url)
    assert back.startswith("http://127.0.0.1:54321/callback?")
    (code,) = parse_qs(urlsplit(back).query)["code"]
    token = f"{oidc_provider.issuer}/token"
    named = {"client_id": "public-300"}
    exchange = {"grant_type": "authorization_code", "code": code, "redirect_uri": "http://127.0.0.1:54321/callback"}
    first = post(token, **named, **exchange, code_verifier=verifier)
    assert first["expires_in"] == 300
    refresh = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
    second = post(token, **named, **refresh)
    assert second["refresh_token"] != first["refresh_token"]
    assert post(token, **named, **refresh)["error"] == "invalid_grant"
    # Who uses an old refresh token again may have stolen it: the whole grant ends.
    refresh["refresh_token"] = second["refresh_token"]
    assert post(token, **named, **refresh)["error"] == "invalid_grant"


def test_who_denies_is_sent_back_with_it(oidc_provider):
    back = Browser("ada", approves=False).sign_in(authorization(oidc_provider)[0])
    assert parse_qs(urlsplit(back).query)["error"] == ["access_denied"]


@pytest.mark.parametrize(("approves", "expected"), [(True, "access_token"), (False, "access_denied")])
def test_a_device_is_confirmed_in_another_browser(oidc_provider, approves, expected):
    asked = {"client_id": "public-300", "scope": "openid archive.read"}
    started = post(f"{oidc_provider.issuer}/device/auth", **asked)
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": started["device_code"]}
    token = f"{oidc_provider.issuer}/token"
    assert post(token, client_id="public-300", **grant)["error"] == "authorization_pending"
    Browser("ada", approves=approves).confirm_device(started["verification_uri_complete"])
    outcome = post(token, client_id="public-300", **grant)
    assert expected in outcome.get("error", outcome)


def test_a_client_with_a_secret_has_tokens_of_its_own(oidc_provider):
    url = f"{oidc_provider.issuer}/token"
    asked = {"grant_type": "client_credentials", "scope": "archive.read"}
    secret = oidc_provider.secret("basic-1")
    basic = f"basic-1:{urlencode({'': secret})[1:]}"
    assert post(url, basic=basic, **asked)["expires_in"] == 1
    assert post(url, basic="basic-1:wrong", **asked)["error"] == "invalid_client"
    assert post(url, client_id="post-300", client_secret=oidc_provider.secret("post-300"), **asked)["expires_in"] == 300
