"""An integration's hooks: run in a process of their own, against a real provider, and believed in nothing."""

import asyncio
import json
import re
from datetime import UTC, datetime

import pytest
from adapters.conftest import ACME, hooked, run

from headwater.connect.envelope import Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge
from headwater.manifest.integration import read_integration
from headwater.secret import Secret

METHODS = read_integration((ACME / "integration.json").read_bytes()).methods


def failing(work):
    with pytest.raises(AuthFailure) as failure:
        run(work)
    return failure.value


def signing_in(hosted, acme, method, **fields):
    async def work():
        async with hosted() as adapter:
            entered = {name: Secret(value) for name, value in fields.items()}
            return await hooked(adapter, acme.endpoint).start(METHODS[method], entered)

    return work()


@pytest.mark.clause("INT-191", "INT-490")
def test_a_token_is_probed_by_its_account(hosted, acme):
    """The envelope comes at once, with the account that the provider names."""
    envelope = run(signing_in(hosted, acme, "token", token="token-of-ada"))
    assert envelope.access_token.text() == "token-of-ada"
    assert (envelope.account.id, envelope.account.kind, envelope.account.display) == ("ada", "acme.user", "Ada")
    assert acme.asked == ["GET /me"]


@pytest.mark.clause("INT-191")
def test_a_token_that_the_provider_refuses_is_refused(hosted, acme):
    assert failing(signing_in(hosted, acme, "token", token="of-nobody")).code == "credential_invalid"


@pytest.mark.clause("INT-192")
def test_a_password_is_exchanged_once(hosted, acme):
    """What comes of it holds a token, and no password."""
    envelope = run(signing_in(hosted, acme, "password", user="ada", password="correct horse"))
    assert acme.asked == ["POST /sign-in/password", "GET /me"]
    assert envelope.refresh_token.text() == "renewal-1"
    assert envelope.expires_at > datetime.now(UTC)
    assert (
        failing(signing_in(hosted, acme, "password", user="ada", password="wrong horse")).code == "credential_invalid"
    )


@pytest.mark.clause("INT-193")
def test_a_code_is_asked_for_and_checked(hosted, acme):
    """The challenge shows a masked target; a wrong code fails, the right one gives the envelope."""

    async def work(code):
        async with hosted() as adapter:
            signs = hooked(adapter, acme.endpoint)
            fields = {"email": Secret("ada@example.com")}
            challenge = await signs.start(METHODS["code"], fields)
            assert isinstance(challenge, Challenge)
            assert (challenge.kind, challenge.target) == ("code", "a***@example.com")
            assert [field.type for field in challenge.fields] == ["token"]
            return await signs.complete(METHODS["code"], fields, challenge, {"code": Secret(code)})

    assert failing(work("000000")).code == "credential_invalid"
    assert run(work("123456")).account.id == "ada"


@pytest.mark.clause("INT-261", "INT-262")
def test_a_credential_is_exchanged_for_a_newer_one(hosted, acme):
    """By a coroutine too; a refused one is told from a provider that is down."""
    old = Credential(Envelope(Secret("old"), refresh_token=Secret("renewal-of-ada")))

    async def work():
        async with hosted() as adapter:
            return await hooked(adapter, acme.endpoint).refresh(METHODS["password"], old)

    assert run(work()).access_token.text() == "token-1"
    assert failing(work()).code == "credential_invalid"
    acme.statuses["/refresh"] = 503
    assert failing(work()).code == "provider_unavailable"


@pytest.mark.clause("INT-361")
def test_a_provider_is_told_of_a_disconnect_by_the_hook_alone(hosted, acme, tmp_path):
    credential = Credential(Envelope(Secret("token-of-ada")))

    async def work(folder):
        async with hosted(folder) as adapter:
            return await hooked(adapter, acme.endpoint).disconnect(METHODS["token"], credential)

    assert run(work(ACME))
    assert acme.asked == ["POST /sign-out"]
    without = written(tmp_path, "class Other(Integration):\n    pass\n")
    assert not run(work(without))
    assert acme.asked == ["POST /sign-out"]


def written(folder, code):
    """Write an integration with Acme's manifest and other code."""
    place = folder / "other"
    place.mkdir()
    (place / "integration.json").write_bytes((ACME / "integration.json").read_bytes())
    (place / "integration.py").write_text(f"from headwater.sdk.integration import *\n\n{code}")
    return place


HOSTILE = {
    "raises": "raise ValueError('sentinel-4711')",
    "prints": "print('{\"result\": 1}', flush=True); raise ValueError",
    "exits": "import os; os._exit(3)",
    "answers nothing of ours": "return {'access_token': 'x'}",
    "an empty token": "return Envelope('')",
    "a free text for an instant": "return Envelope('token-of-ada', expires_at='tomorrow')",
    "an instant without a zone": "from datetime import datetime; return Envelope('t', expires_at=datetime(2030, 1, 1))",
    "a token of a mebibyte": "return Envelope('x' * 1048576)",
    "metadata that holds the token": "return Envelope('token-of-ada', metadata={'note': 'is token-of-ada'})",
    "metadata with a digest of the token": "import hashlib; return Envelope('token-of-ada', metadata={'id':"
    " hashlib.sha256(b'token-of-ada').hexdigest()})",
    "large metadata": "return Envelope('token-of-ada', metadata={'note': 'x' * 5000})",
    "an account without an id": "return Envelope('token-of-ada', account=Account('', 'kind'))",
    "a refusal that is none of ours": "raise Refused('made_up')",
    "a refusal that is no text": "raise Refused([])",
    "a challenge of another kind": "return Challenge('riddle')",
    "an upstream that is large": "return Challenge('code', upstream={'x': 'y' * 5000})",
}


@pytest.mark.clause("INT-240", "INT-241", "INT-242", "INT-284", "INT-283", "INT-450")
@pytest.mark.parametrize("what", HOSTILE)
def test_what_hooks_give_is_held_to_its_form(what, hosted, acme, tmp_path, capfd):
    """Whatever they do it is one failure, and the host goes on; nothing of what they said is repeated."""
    code = f"class Bad(Integration):\n    def start_auth(self, ctx, method, fields):\n        {HOSTILE[what]}\n"
    code += "    def get_account(self, ctx):\n        return Account('ada', 'acme.user')\n"

    async def work():
        async with hosted(written(tmp_path, code)) as adapter:
            await hooked(adapter, acme.endpoint).start(METHODS["token"], {"token": Secret("token-of-ada")})

    failure = failing(work())
    assert failure.code == "provider_protocol_error"
    assert "sentinel" not in f"{failure!r}{failure}{failure.__cause__}"
    assert "token-of-ada" not in str(capfd.readouterr())


@pytest.mark.clause("INT-492")
def test_a_hook_that_does_not_end_is_ended(hosted, acme, tmp_path, monkeypatch):
    monkeypatch.setattr("headwater.limits.HOOK_SECONDS", 1.0)
    code = "class Bad(Integration):\n    def start_auth(self, ctx, method, fields):\n        while True: pass\n"

    async def work():
        async with hosted(written(tmp_path, code)) as adapter:
            await hooked(adapter, acme.endpoint).start(METHODS["token"], {"token": Secret("t")})

    assert failing(work()).code == "provider_timeout"


@pytest.mark.clause("INT-493")
@pytest.mark.parametrize("url", ["https://other.example/", "http://localhost:1/", "file:///etc/passwd", "x"])
def test_a_hook_reaches_the_hosts_of_its_manifest_and_no_others(url, hosted, acme, tmp_path):
    code = "class Bad(Integration):\n    def start_auth(self, ctx, method, fields):\n"
    code += f"        ctx.http.request('GET', {url!r})\n"

    async def work():
        async with hosted(written(tmp_path, code)) as adapter:
            await hooked(adapter, acme.endpoint).start(METHODS["token"], {"token": Secret("t")})

    assert failing(work()).code == "provider_protocol_error"
    assert acme.asked == []


@pytest.mark.clause("INT-493")
def test_a_hook_has_no_network_of_its_own(hosted, acme, tmp_path):
    """It cannot go round the host's client, not even to the provider."""
    code = (
        "import socket\nclass Bad(Integration):\n    def start_auth(self, ctx, method, fields):\n"
        f"        socket.create_connection(('127.0.0.1', {acme.server_port}), 2).close()\n"
        "        return Envelope('reached')\n    def get_account(self, ctx):\n        return Account('a', 'b')\n"
    )

    async def work():
        async with hosted(written(tmp_path, code)) as adapter:
            await hooked(adapter, acme.endpoint).start(METHODS["token"], {"token": Secret("t")})

    assert failing(work()).code == "provider_protocol_error"


@pytest.mark.clause("INT-493")
def test_a_write_is_sent_once_whatever_comes_of_it(hosted, acme):
    acme.statuses["/sign-in/password"] = 503
    failure = failing(signing_in(hosted, acme, "password", user="ada", password="correct horse"))
    assert failure.code == "provider_unavailable"
    assert acme.asked == ["POST /sign-in/password"]


@pytest.mark.clause("INT-491", "INT-176", "INT-470")
def test_a_context_holds_these_things_and_no_more(hosted, acme, tmp_path):
    """The resolved provider with the application's own configuration, which no client can put in its place."""
    code = (
        "class Good(Integration):\n    def start_auth(self, ctx, method, fields):\n"
        "        provider = ctx.provider\n"
        "        told = [*sorted(vars(ctx)), provider.name, provider.settings['client_secret']]\n"
        "        return Envelope('token-of-ada', metadata={'told': told, 'shown': repr(provider)})\n"
        "    def get_account(self, ctx):\n        return Account('a', 'b')\n"
    )

    async def work():
        async with hosted(written(tmp_path, code)) as adapter:
            return await hooked(adapter, acme.endpoint).start(METHODS["token"], {"token": Secret("t-1234")})

    members = ["acting_user", "clock", "credential", "deadline", "http", "log", "owner", "provider", "team", "throttle"]
    metadata = run(work()).metadata
    assert metadata["told"] == [*members, "tickets.acme.example", "of-the-app"]
    assert "of-the-app" not in metadata["shown"]


@pytest.mark.clause("INT-474")
def test_a_hook_is_given_one_credential_and_has_no_way_to_another(hosted, acme, tmp_path):
    """A sign-in has none yet; and nothing that a hook can send asks for one."""
    code = (
        "class Bad(Integration):\n    def start_auth(self, ctx, method, fields):\n"
        "        assert ctx.credential is None\n        import os, json\n"
        "        ctx.http._exchange({'credential': 'of-another'})\n"
    )

    async def work():
        async with hosted(written(tmp_path, code)) as adapter:
            await hooked(adapter, acme.endpoint).start(METHODS["token"], {"token": Secret("t-1234")})

    assert failing(work()).code == "provider_protocol_error"


@pytest.mark.clause("INT-282")
def test_the_log_of_a_hook_has_no_secret(hosted, acme, tmp_path, capfd):
    """Whatever it writes there, by its log or by an error that it did not foresee."""
    code = (
        "class Bad(Integration):\n    def start_auth(self, ctx, method, fields):\n"
        "        ctx.log.write('trying', secret=fields['token'])\n        raise ValueError(fields['token'])\n"
    )

    async def work():
        async with hosted(written(tmp_path, code)) as adapter:
            try:
                await hooked(adapter, acme.endpoint).start(METHODS["token"], {"token": Secret("sentinel-9")})
            finally:
                await adapter.stop()
                told.append(adapter.log)

    told: list[str] = []
    assert failing(work()).code == "provider_protocol_error"
    assert "trying" in told[0]
    assert "ValueError in start_auth" in told[0]
    assert "sentinel-9" not in told[0]
    assert not re.search("sentinel", json.dumps(str(capfd.readouterr())))


def test_an_answer_that_nobody_waits_for_any_more_answers_no_other_call(hosted, acme, tmp_path):
    """Else the account of one credential could be taken for that of the next."""
    folder = written(
        tmp_path,
        """class Other(Integration):
    def get_account(self, ctx):
        if ctx.credential.access_token == "first":
            ctx.throttle()
        return Account(ctx.credential.access_token, "user")
""",
    )

    async def work():
        async with hosted(folder) as adapter:

            async def leave():
                first.cancel()

            def asked(token):
                credential = Credential(Envelope(Secret(token)))
                return hooked(adapter, acme.endpoint, leave).probe(METHODS["token"], credential)

            first = asyncio.ensure_future(asked("first"))
            await asyncio.wait([first])
            assert first.cancelled()
            return await asked("second")

    assert failing(work()).code == "provider_protocol_error"
