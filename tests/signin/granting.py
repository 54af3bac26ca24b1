"""A provider that grants at once, and a Headwater that is connected to it."""

import asyncio
import itertools
import json
import sys
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest
from signin.provider import Asked, Provider, Reply
from signin.test_connecting import Consenting, integration

from headwater import clock
from headwater.configuration.selecting import Selection
from headwater.connect.entries import Means
from headwater.connect.ports import Challenge
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.settings import Settings

USES = Path(__file__).with_name("uses.py")
SELECTED = Selection("shop", "me", None)


class Granting:
    """A provider that grants at once, rotates refresh tokens, and ends a grant whose token is used twice.

    The first access token lives for `first` seconds, the next ones for an hour. `says` may answer a refresh instead.
    """

    def __init__(self) -> None:
        self.first = 30
        self.numbers = itertools.count(1)
        self.good = ""
        self.refreshes: list[str] = []
        self.says: list[Reply | dict] = []
        self.account = "ada"
        self.scope = "archive.read"
        self.issuer, self.nonce = "", ""
        self.asked, self.pause = threading.Event(), threading.Event()
        self.pause.set()

    def __call__(self, asked: Asked) -> Reply:
        if asked.path.startswith("/auth?"):
            query = dict(parse_qsl(urlsplit(asked.path).query))
            self.nonce = query.get("nonce", "")
            back = urlencode({"code": "sentinel-code", "state": query["state"]})
            return Reply(302, headers={"Location": f"{query['redirect_uri']}?{back}"})
        if asked.path == "/me":
            return Reply(body={"sub": self.account})
        if asked.form["grant_type"] != "refresh_token":
            return self._granted(self.first)
        self.refreshes.append(asked.form["refresh_token"])
        self.asked.set()
        self.pause.wait(20)
        said = self.says.pop(0) if self.says else {}
        if isinstance(said, Reply) and not said.cut:
            return said
        if asked.form["refresh_token"] != self.good:
            self.good = ""
            return Reply(400, {"error": "invalid_grant"})
        reply = self._granted(3600)
        return Reply(reply.status, {**reply.body, **said}) if isinstance(said, dict) else said

    def _granted(self, lifetime: int) -> Reply:
        number = next(self.numbers)
        self.good = f"sentinel-refresh-{number}"
        tokens = {"access_token": f"sentinel-access-{number}", "refresh_token": self.good}
        named = {"id_token": id_token(self.issuer, self.account, self.nonce)} if self.issuer else {}
        return Reply(body={**tokens, **named, "token_type": "Bearer", "expires_in": lifetime, "scope": self.scope})


def id_token(issuer: str, account: str, nonce: str) -> str:
    """Return an ID token of now; it comes straight from the token endpoint, so that nobody looks at its signature."""
    now = int(clock.now().timestamp())
    claims = {"iss": issuer, "sub": account, "aud": "public-300", "iat": now, "exp": now + 300, "nonce": nonce}
    parts = (json.dumps({"alg": "RS256"}), json.dumps(claims), "signature")
    return ".".join(urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


def browse(challenge: Challenge) -> None:
    """Open where to consent, and follow to where that leads, beside the program that waits for it."""
    opened = build_opener(ProxyHandler({})).open
    threading.Thread(target=lambda: opened(challenge.url, timeout=20).read()).start()


class Shown:
    """A person who is shown where to consent, and does."""

    def __init__(self, consents: Callable[[Challenge], None] = browse) -> None:
        self.consents = consents

    def show(self, challenge) -> None:
        self.consents(challenge)

    def answer(self, challenge):
        raise AssertionError("nothing is asked for")


def declared() -> dict:
    """Return an integration that is connected at once."""
    document = integration(requestedScopes=["archive.read"])
    document["auth"]["methods"][0]["identity"] = {"source": "api", "kind": "person", "path": "/me", "subject": "/sub"}
    return document


def host(headwater: Consenting) -> Host:
    return Host(Settings(headwater.place / "config.toml", headwater.state))


def connected(headwater: Consenting, running: Provider, document: dict | None = None) -> Consenting:
    headwater.set_up(running.url, document or declared())
    asyncio.run(host(headwater).connecting.connect(SELECTED, means=Means(None, Shown())))
    return headwater


def use(headwater: Consenting) -> str:
    used = asyncio.run(host(headwater).connecting.credential_for("shop/me"))
    return used.credential.envelope.access_token.text()


def refused(headwater: Consenting) -> tuple[str, str, str]:
    with pytest.raises(HeadwaterError) as caught:
        use(headwater)
    return caught.value.code, caught.value.next_action, caught.value.data.get("service_code", "")


def state(headwater: Consenting) -> str:
    return host(headwater).connecting.describe(SELECTED, None)["connection"]["state"]


def program(headwater: Consenting, *words: str) -> list[str]:
    return [sys.executable, str(USES), str(headwater.place / "config.toml"), str(headwater.state), *words]


def later(monkeypatch, **span: float) -> None:
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + timedelta(**span))
