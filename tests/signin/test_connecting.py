"""Connecting by consent, from the command line, at the certified OpenID provider."""

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest
from journeys.conftest import GUESTS, Headwater
from servers.oidc import Browser, OpenIdProvider
from signin.provider import Reply, provider

SHOP = GUESTS / "shop"
SCOPES = ["archive.read", "offline_access", "openid"]


def integration(client: str = "public-300", **oauth) -> dict:
    """Return an integration that signs in at the OpenID provider."""
    method = {
        "key": "consent",
        "label": "Consent",
        "flow": "oauth",
        "scheme": "oauth2_grant",
        "identity": {"source": "id_token", "kind": "person", "path": "/me"},
        "oauth": {
            "tokenUrl": "/token",
            "authorizeUrl": "/auth",
            "deviceAuthorizationUrl": "/device/auth",
            "clientId": client,
            "confidential": not client.startswith("public"),
            "requestedScopes": SCOPES,
            "minimumScopes": ["archive.read"],
            **oauth,
        },
    }
    whole = json.loads((SHOP / "integration.json").read_text())
    return {**whole, "auth": {"methods": [method]}, "catalog": {"authType": "oauth", "enabledByDefault": True}}


class Consenting(Headwater):
    """A Headwater with an instance at a provider that asks for consent."""

    def write(self, name: str, content: str) -> Path:
        """Write a file that only its owner can read."""
        path = self.place / name
        path.touch(mode=0o600)
        path.write_text(content)
        return path

    def entry(self, **fields: str) -> list[str]:
        """Return the flag that enters a credential by a protected file."""
        return ["--credential-file", str(self.write("entry.json", json.dumps(fields)))]

    def connection(self) -> dict:
        """Describe the connection."""
        return self.type("connections", "describe", "shop/me").result["connection"]

    def set_up(self, url: str, document: dict) -> None:
        """Configure the instance, with a connector that declares this."""
        connector = shutil.copytree(SHOP, self.place / "connector", dirs_exist_ok=True)
        (connector / "integration.json").write_text(json.dumps(document))
        key = self.write("key", "k" * 43)
        sealed = f'binding = "sealed_file"\nfile = "{self.place}/custody.sealed"\nkey_file = "{key}"\n'
        folder = f'[instances."shop/me"]\nfolder = "{connector}"\n'
        self.write("collect.toml", f'format = "headwater-collect/1"\n[custody]\n{sealed}{folder}')
        head = f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n[adapters]\n'
        self.write("config.toml", f'{head}[connectors.shop.instances.me]\nendpoint = "{url}"\n')

    @contextmanager
    def typing(self, *words: str):
        """Type a command in a session without a terminal, and yield its process."""
        environment = {"HOME": str(self.place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(
            self.words(*words), env=environment, start_new_session=True, text=True, **pipes
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def custody_holds(self, *texts: str) -> bool:
        """Whether any file below shows one of these texts."""
        return any(
            text.encode() in path.read_bytes() for path in self.place.rglob("*") if path.is_file() for text in texts
        )


def open_(url: str) -> None:
    with build_opener(ProxyHandler({})).open(url, timeout=20) as page:
        page.read()


def consent(line: str, account: str = "ada", *, approves: bool = True) -> None:
    """Do what a line on stderr asks for."""
    said, what, *rest = line.split()
    assert (said, what) == ("headwater:", "consent-url")
    open_(Browser(account, approves=approves).sign_in(rest[0]))


class TestBrowser:
    @pytest.mark.clause("CLI-371", "CLI-373", "CLI-387", "INT-194")
    def test_a_public_client_needs_no_source(self, headwater, oidc_provider: OpenIdProvider):
        headwater.set_up(oidc_provider.issuer, integration())
        with headwater.typing("connections", "connect", "shop/me") as process:
            consent(process.stderr.readline())
            out, err = process.communicate(timeout=60)
        assert (err, process.returncode) == ("", 0)
        shown = headwater.connection()
        assert shown["external_identity"] == {"kind": "person", "subject": "ada"}
        assert shown["state"] == "ready"
        assert json.loads(out)["result"]["connection"] == shown["connection"]

    @pytest.mark.clause("CLI-372")
    def test_a_confidential_client_brings_its_secret(self, headwater, oidc_provider: OpenIdProvider):
        headwater.set_up(oidc_provider.issuer, integration("basic-300"))
        missing = headwater.type("connections", "connect", "shop/me").failure
        assert missing["code"] == "protected_entry_unavailable"
        more = headwater.entry(client_secret=oidc_provider.secret("basic-300"), more="x")
        assert headwater.type("connections", "connect", "shop/me", *more).failure["code"] == "invalid_input"
        secret = headwater.entry(client_secret=oidc_provider.secret("basic-300"))
        with headwater.typing("connections", "connect", "shop/me", *secret) as process:
            consent(process.stderr.readline())
            process.communicate(timeout=60)
        assert process.returncode == 0
        (headwater.place / "entry.json").unlink()
        assert not headwater.custody_holds("the secret of basic-300")

    @pytest.mark.clause("INT-194")
    def test_what_others_send_to_the_port_neither_ends_the_sign_in_nor_joins_it(self, headwater, oidc_provider):
        headwater.set_up(oidc_provider.issuer, integration())
        with headwater.typing("connections", "connect", "shop/me") as process:
            line = process.stderr.readline()
            back = dict(parse_qsl(urlsplit(line.split()[2]).query))["redirect_uri"]
            for query in ("", "?code=theirs&state=guessed", "?error=access_denied", "favicon.ico"):
                with pytest.raises(HTTPError) as caught:
                    open_(f"{back}{query}")
                caught.value.close()
            consent(line)
            _, err = process.communicate(timeout=60)
        assert (err, process.returncode) == ("", 0)
        assert headwater.connection()["external_identity"] == {"kind": "person", "subject": "ada"}

    @pytest.mark.clause("CLI-376", "CLI-036")
    def test_nothing_is_stored_where_a_person_says_no(self, headwater, oidc_provider: OpenIdProvider):
        headwater.set_up(oidc_provider.issuer, integration())
        with headwater.typing("connections", "connect", "shop/me") as process:
            consent(process.stderr.readline(), approves=False)
            _, err = process.communicate(timeout=60)
        failure = json.loads(err)["error"]["data"]  # behind the consent line, which came first, it is all there is
        assert (failure["code"], failure["service_code"], process.returncode) == ("service_failure", "unauthorized", 1)
        assert headwater.type("connections", "list", "shop/me").result["connections"] == []
        assert kept(headwater) == 0

    @pytest.mark.clause("CLI-376")
    def test_nothing_is_stored_where_it_is_interrupted(self, headwater, oidc_provider: OpenIdProvider):
        headwater.set_up(oidc_provider.issuer, integration())
        with headwater.typing("connections", "connect", "shop/me") as process:
            process.stderr.readline()
            process.send_signal(2)
            _, err = process.communicate(timeout=60)
        assert (json.loads(err)["error"]["data"]["code"], process.returncode) == ("interrupted", 130)
        assert kept(headwater) == 0
        with headwater.typing("connections", "connect", "shop/me") as process:
            consent(process.stderr.readline())
            process.communicate(timeout=60)
        assert process.returncode == 0

    @pytest.mark.clause("CLI-377")
    def test_nothing_is_stored_where_less_is_granted_than_is_needed(self, headwater):
        def answer(asked):
            if asked.path == "/device":
                return Reply(
                    body={
                        "device_code": "d",
                        "user_code": "u",
                        "verification_uri": "https://x.example/",
                        "expires_in": 60,
                        "interval": 1,
                    }
                )
            if asked.path == "/token":
                return Reply(body={"access_token": "sentinel-token", "token_type": "Bearer", "scope": "other"})
            return Reply(body={"sub": "ada"})

        with provider(answer) as running:
            oauth = {"deviceAuthorizationUrl": "/device"}
            document = integration(**oauth)
            document["auth"]["methods"][0]["identity"] = {
                "source": "api",
                "kind": "person",
                "path": "/me",
                "subject": "/sub",
            }
            headwater.set_up(running.url, document)
            answer = headwater.type("connections", "connect", "shop/me", "--device")
        told, failure = answer.stderr.splitlines()
        assert told == "headwater: device-code u https://x.example/"
        data = json.loads(failure)["error"]["data"]
        assert (data["code"], data["stage"], answer.status) == ("not_granted", "admission", 1)
        assert kept(headwater) == 0
        assert not headwater.custody_holds("sentinel-token")


class TestDevice:
    @pytest.mark.clause("CLI-374")
    def test_consent_on_another_device(self, headwater, oidc_provider: OpenIdProvider):
        headwater.set_up(oidc_provider.issuer, integration())
        with headwater.typing("connections", "connect", "shop/me", "--device") as process:
            said, what, code, url = process.stderr.readline().split()
            assert (said, what) == ("headwater:", "device-code")
            Browser("ada").confirm_device(f"{url}?user_code={code}")
            process.communicate(timeout=60)
        assert process.returncode == 0
        assert headwater.connection()["external_identity"]["subject"] == "ada"

    @pytest.mark.clause("CLI-378")
    def test_a_provider_that_wants_to_be_asked_too_seldom_is_not_asked(self, headwater):
        said = {"device_code": "d", "user_code": "u", "verification_uri": "https://x.example/", "expires_in": 60}
        with provider(lambda asked: Reply(body={**said, "interval": 9999})) as running:
            headwater.set_up(running.url, integration(deviceAuthorizationUrl="/device"))
            failure = headwater.type("connections", "connect", "shop/me", "--device").failure
            assert [asked.path for asked in running.asked] == ["/device"]
        assert (failure["code"], failure["stage"], failure["next_action"]) == ("unsupported", "admission", "none")
        assert kept(headwater) == 0

    @pytest.mark.clause("CLI-375")
    def test_a_static_credential_knows_no_other_device(self, headwater):
        headwater.set_up("http://127.0.0.1:9", json.loads((SHOP / "integration.json").read_text()))
        failure = headwater.type("connections", "connect", "shop/me", "--device").failure
        assert failure["code"] == "protected_entry_unavailable"
        entry = headwater.entry(token="sentinel")
        failure = headwater.type("connections", "connect", "shop/me", "--device", *entry).failure
        assert (failure["code"], failure["stage"], failure["next_action"]) == ("invalid_input", "arguments", "none")


def kept(headwater: Consenting) -> int:
    """Return how many versions custody has been given."""
    with sqlite3.connect(headwater.state / "headwater.db") as database:
        (count,) = database.execute("SELECT count(*) FROM credential_versions").fetchone()
    database.close()
    return count


class TestClient:
    def test_the_client_of_the_operator_serves_where_the_manifest_names_none(self, headwater):
        document = integration(deviceAuthorizationUrl="/device")
        del document["auth"]["methods"][0]["oauth"]["clientId"]
        said = {"device_code": "d", "user_code": "u", "verification_uri": "https://x.example/", "expires_in": 60}
        with provider(lambda asked: Reply(body={**said, "interval": 9999})) as running:
            headwater.set_up(running.url, document)
            failure = headwater.type("connections", "connect", "shop/me", "--device").failure
            assert (failure["code"], running.asked) == ("invalid_configuration", [])
            with (headwater.place / "collect.toml").open("a") as file:
                file.write('[providers."shop.example"]\nclient_id = "mine"\n')
            assert headwater.type("connections", "connect", "shop/me", "--device").failure["code"] == "unsupported"
        assert running.asked[0].form["client_id"] == "mine"


class TestAttempts:
    @pytest.mark.clause("INT-314", "INT-313", "INT-312")
    def test_too_many_have_to_wait_and_the_provider_is_not_asked(self, headwater):
        with provider(lambda asked: Reply(401)) as running:
            headwater.set_up(running.url, json.loads((SHOP / "integration.json").read_text()))
            entry = headwater.entry(token="sentinel")
            codes = [headwater.type("connections", "connect", "shop/me", *entry).failure for _ in range(6)]
        assert [failure["code"] for failure in codes] == ["service_failure"] * 5 + ["capacity"]
        assert "Try again in " in codes[-1]["message"]
        assert len(running.asked) == 5
        (headwater.place / "entry.json").unlink()
        assert not headwater.custody_holds("sentinel")
