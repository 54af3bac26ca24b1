"""The certified OpenID provider, and the browser of somebody who signs in at it.

The clients are `public-300` and `public-1` (no secret; PKCE is required), `basic-300`, `basic-1` and `post-300`
(with a secret); the number is how many seconds an access token lives. All may use the code, refresh and device
grants; those with a secret client credentials too. Refresh tokens rotate: one that is used twice ends its grant.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

import pytest
from servers.running import needed, running

FOLDER = Path(__file__).with_name("oidc")
SCOPES = ("openid", "profile", "email", "offline_access", "archive.read", "archive.write")
_STEPS = 20
_TIMEOUT_SECONDS = 20


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Browser:
    """Somebody's browser: it keeps cookies, and fills in the forms of the provider."""

    def __init__(self, account: str, *, approves: bool = True) -> None:
        self._answers = {"account": account, "decision": "approve" if approves else "deny"}
        jar = HTTPCookieProcessor(CookieJar(DefaultCookiePolicy(rfc2965=True)))
        self._open: OpenerDirector = build_opener(ProxyHandler({}), _NoRedirect, jar)

    def sign_in(self, url: str) -> str:
        """Open an authorization URL, go through its pages, and return the address that is off the provider's own.

        That address is not opened: the test does that, or does not.
        """
        issuer = re.match(r"https?://[^/]+", url)
        assert issuer is not None
        for _ in range(_STEPS):
            if not url.startswith(issuer[0] + "/"):
                return url
            page, location = self._get(url)
            if location is None:
                page, location = self._get(url, self._answers if "/interaction/" in url else _hidden(page))
            assert location is not None, page
            url = urljoin(url, location)
        raise AssertionError("the provider asks again and again")

    def confirm_device(self, url: str) -> str:
        """Open a `verification_uri_complete`, approve, and return the page that the person is left with."""
        page, location = self._get(url)
        for _ in range(_STEPS):
            if location is not None:
                url = urljoin(url, location)
                page, location = self._get(url)
            elif "/interaction/" in url:
                page, location = self._get(url, self._answers)
            elif form := _hidden(page):
                action = re.search(r'action="([^"]+)"', page)
                url = urljoin(url, action[1]) if action else url
                if self._answers["decision"] == "deny" and "abort" in page:
                    return self._get(url, {**form, "abort": "yes"})[0]
                page, location = self._get(url, form)
            else:
                return page
        raise AssertionError("the provider asks again and again")

    def _get(self, url: str, form: dict[str, str] | None = None) -> tuple[str, str | None]:
        body = None if form is None else urlencode(form).encode()
        try:
            with self._open.open(Request(url, data=body), timeout=_TIMEOUT_SECONDS) as answer:
                return answer.read().decode(), None
        except HTTPError as answer:
            with answer:
                return answer.read().decode(), answer.headers.get("Location")


def _hidden(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))


@dataclass(frozen=True)
class OpenIdProvider:
    """The provider that runs."""

    issuer: str

    @property
    def discovery(self) -> str:
        """Where it describes itself."""
        return f"{self.issuer}/.well-known/openid-configuration"

    def secret(self, client: str) -> str:
        """Return a confidential client's secret."""
        return f"the secret of {client}, which is long enough"


@pytest.fixture(scope="session")
def oidc_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenIdProvider]:
    """The OpenID provider, once for all the tests of a worker. Its accounts are made by being named."""
    needed(FOLDER / "node_modules", "the OpenID provider from npm")
    node = shutil.which("node")
    assert node is not None, "oidc-provider is installed, and node is not"
    log = tmp_path_factory.mktemp("oidc") / "log"
    with running([node, FOLDER / "server.mjs"], log) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        yield OpenIdProvider(json.loads(line)["issuer"])
