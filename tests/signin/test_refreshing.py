"""A credential is renewed before it expires: once, by one party, and durable before anybody uses it."""

import asyncio
import hashlib
import json
import subprocess
import threading
from datetime import timedelta

import pytest
from servers.oidc import Browser
from signin.granting import SELECTED, Shown, connected, declared, host, later, program, refused, state, use
from signin.provider import Reply
from signin.test_connecting import integration, kept

from headwater import clock
from headwater.connect.entries import Means
from headwater.connect.envelope import Credential, Envelope
from headwater.connect.lifetime import is_due
from headwater.errors import HeadwaterError
from headwater.secret import Secret


class TestLead:
    @pytest.mark.clause("CLI-880", "INT-265")
    @pytest.mark.parametrize(
        ("left", "due"), [(61, False), (60, False), (59.9, True), (0, True), (-1, True), (None, False)]
    )
    def test_a_token_with_less_than_a_minute_left_is_due(self, left, due):
        now = clock.now()
        ends = None if left is None else now + timedelta(seconds=left)
        assert is_due(Credential(Envelope(Secret("x"), expires_at=ends)), now) is due


class TestOnce:
    @pytest.mark.clause("INT-263", "INT-265")
    def test_ten_processes_with_a_token_that_is_due_ask_once(self, headwater, running, granting):
        connected(headwater, running)
        processes = [subprocess.Popen(program(headwater), stdout=subprocess.PIPE) for _ in range(10)]
        said = {json.loads(process.communicate(timeout=100)[0]) for process in processes}
        assert granting.refreshes == ["sentinel-refresh-1"]
        assert said == {hashlib.sha256(b"sentinel-access-2").hexdigest()}

    @pytest.mark.clause("INT-263", "INT-264")
    def test_the_certified_provider_sees_no_token_twice(self, headwater, oidc_provider):
        headwater.set_up(oidc_provider.issuer, integration())

        def consents(challenge):
            Browser("ada").confirm_device(f"{challenge.url}?user_code={challenge.user_code}")

        asyncio.run(host(headwater).connecting.connect(SELECTED, means=Means(None, Shown(consents), device=True)))
        for ahead in ("250", "520"):  # a token lives for 300 seconds: each time it is due
            processes = [subprocess.Popen(program(headwater, ahead), stdout=subprocess.PIPE) for _ in range(3)]
            said = {json.loads(process.communicate(timeout=100)[0]) for process in processes}
            assert len(said) == 1
            assert len(said.pop()) == 64

    def test_a_token_that_is_not_due_is_used_as_it_is(self, headwater, running, granting):
        granting.first = 300
        connected(headwater, running)
        assert use(headwater) == "sentinel-access-1"
        assert granting.refreshes == []


class TestDurable:
    @pytest.mark.clause("INT-264")
    def test_what_custody_has_is_published_by_the_next_one_and_nobody_is_asked(self, headwater, running, granting):
        connected(headwater, running)
        killed = subprocess.run(program(headwater, "0", "publish"), stdout=subprocess.PIPE, timeout=60)
        assert killed.returncode == -9
        assert use(headwater) == "sentinel-access-2"
        assert granting.refreshes == ["sentinel-refresh-1"]

    @pytest.mark.clause("INT-264", "CLI-872")
    def test_an_answer_that_was_not_kept_is_not_asked_for_again(self, headwater, running, granting):
        connected(headwater, running)
        killed = subprocess.run(program(headwater, "0", "keep"), stdout=subprocess.PIPE, timeout=60)
        assert killed.returncode == -9
        assert refused(headwater) == ("service_failure", "repair_connection", "unauthorized")
        assert state(headwater) == "reauthorization_required"
        assert refused(headwater)[1] == "repair_connection"
        assert granting.refreshes == ["sentinel-refresh-1"]

    def test_an_answer_that_was_lost_on_the_way_is_not_asked_for_again(self, headwater, running, granting):
        connected(headwater, running)
        granting.says = [Reply(cut=True)]
        assert refused(headwater) == ("service_failure", "repair_connection", "unauthorized")
        assert refused(headwater)[1] == "repair_connection"
        assert granting.refreshes == ["sentinel-refresh-1"]

    @pytest.mark.clause("CLI-877")
    def test_a_deadline_does_not_break_off_what_was_sent(self, headwater, running, granting, monkeypatch):
        connected(headwater, running)
        asked = threading.Event()

        async def hurry():
            task = asyncio.ensure_future(host(headwater).connecting.credential_for("shop/me"))
            await asyncio.to_thread(asked.wait, 20)
            task.cancel()
            granting.pause.set()
            with pytest.raises(asyncio.CancelledError):
                await task

        granting.pause.clear()
        granting.asked = asked
        asyncio.run(hurry())
        assert use(headwater) == "sentinel-access-2"
        assert granting.refreshes == ["sentinel-refresh-1"]

    def test_a_reconnect_makes_it_good_again(self, headwater, running, granting):
        connected(headwater, running)
        granting.says = [Reply(cut=True)]
        refused(headwater)
        granting.first = 300
        means = Means(None, Shown())
        asyncio.run(host(headwater).connecting.reconnect(SELECTED, None, "1", means=means))
        assert use(headwater) == "sentinel-access-3"


class TestRefused:
    @pytest.mark.clause("INT-262", "CLI-456", "CLI-872")
    def test_a_dead_refresh_token_ends_the_connection(self, headwater, running, granting):
        connected(headwater, running)
        granting.good = "another"
        assert refused(headwater) == ("service_failure", "repair_connection", "unauthorized")
        assert state(headwater) == "reauthorization_required"
        assert refused(headwater)[1] == "repair_connection"
        assert len(granting.refreshes) == 1

    @pytest.mark.clause("CLI-874", "CLI-911")
    @pytest.mark.parametrize("status", [200, 400])
    def test_one_that_the_provider_calls_revoked_is_told_as_that(self, headwater, running, granting, status):
        connected(headwater, running)
        granting.says = [Reply(status, {"ok": False, "error": "token_revoked"})]
        assert refused(headwater) == ("revoked", "create_connection", "")
        assert state(headwater) == "reauthorization_required"
        assert len(granting.refreshes) == 1

    @pytest.mark.clause("INT-262")
    @pytest.mark.parametrize("status", [429, 503])
    def test_a_failure_that_passes_keeps_a_token_that_is_still_good(self, headwater, running, granting, status):
        connected(headwater, running)
        granting.says = [Reply(status, headers={"Retry-After": "7"})]
        assert use(headwater) == "sentinel-access-1"
        assert use(headwater) == "sentinel-access-2"

    @pytest.mark.clause("INT-262")
    def test_behind_its_end_a_failure_that_passes_is_told_and_tried_again(
        self, headwater, running, granting, monkeypatch
    ):
        connected(headwater, running)
        granting.says = [Reply(503)]
        later(monkeypatch, seconds=40)
        assert refused(headwater) == ("unavailable", "retry_explicitly", "")
        assert use(headwater) == "sentinel-access-2"

    @pytest.mark.clause("CLI-873")
    def test_a_token_that_may_do_less_is_not_taken(self, headwater, running, granting):
        connected(headwater, running)
        granting.says = [{"scope": "other"}]
        assert refused(headwater)[:2] == ("not_granted", "repair_connection")
        assert kept(headwater) == 1

    @pytest.mark.clause("INT-266")
    def test_a_token_of_another_account_is_not_taken(self, headwater, running, granting):
        granting.issuer = running.url
        document = declared()
        document["auth"]["methods"][0]["identity"] = {"source": "id_token", "kind": "person"}
        connected(headwater, running, document)
        granting.account = "eve"
        assert refused(headwater) == ("identity_mismatch", "revoke_connection", "")
        assert kept(headwater) == 1
        assert (
            host(headwater).connecting.describe(SELECTED, None)["connection"]["external_identity"]["subject"] == "ada"
        )

    @pytest.mark.clause("CLI-466")
    def test_a_probe_that_finds_another_account_is_refused(self, headwater, running, granting):
        connected(headwater, running)
        granting.account = "eve"
        with pytest.raises(HeadwaterError) as caught:
            asyncio.run(host(headwater).connecting.revalidate(SELECTED, None, "1"))
        assert caught.value.code == "identity_mismatch"

    @pytest.mark.clause("INT-260")
    def test_without_a_refresh_token_an_expired_one_asks_for_a_reconnect(
        self, headwater, running, granting, monkeypatch
    ):
        granted = granting._granted
        granting._granted = lambda lifetime: Reply(
            body={name: value for name, value in granted(lifetime).body.items() if name != "refresh_token"}
        )
        connected(headwater, running)
        assert use(headwater) == "sentinel-access-1"
        later(monkeypatch, seconds=40)
        assert state(headwater) == "reauthorization_required"
        assert refused(headwater)[1] == "repair_connection"
        assert granting.refreshes == []


class TestClientItself:
    """Client credentials use nothing up: what was lost may be asked for again."""

    def connected(self, headwater, running, granting) -> None:
        granted = granting._granted
        granting._granted = lambda lifetime: Reply(
            body={name: value for name, value in granted(lifetime).body.items() if name != "refresh_token"}
        )
        document = declared()
        oauth = {"tokenUrl": "/token", "clientId": "c", "requestedScopes": ["archive.read"]}
        document["auth"]["methods"][0].update({"scheme": "oauth2_client_credentials", "oauth": oauth})
        headwater.set_up(running.url, document)
        means = Means(lambda method: {"client_secret": Secret("sentinel-secret")}, Shown())
        asyncio.run(host(headwater).connecting.connect(SELECTED, means=means))

    def test_a_token_that_is_due_is_replaced_by_another_one(self, headwater, running, granting):
        self.connected(headwater, running, granting)
        granting.first = 3600
        assert use(headwater) == "sentinel-access-2"
        assert use(headwater) == "sentinel-access-2"

    def test_an_answer_that_was_lost_is_asked_for_again(self, headwater, running, granting, monkeypatch):
        self.connected(headwater, running, granting)
        granting.first, answer = 3600, running.answer
        running.answer = lambda asked: Reply(cut=True)
        assert use(headwater) == "sentinel-access-1"
        later(monkeypatch, seconds=40)
        assert refused(headwater)[1] == "retry_status"
        running.answer = answer
        assert use(headwater) == "sentinel-access-2"


@pytest.mark.clause("CLI-365", "INT-177")
def test_no_secret_is_anywhere_but_in_custody(headwater, running, granting):
    connected(headwater, running)
    use(headwater)
    assert not headwater.custody_holds("sentinel-")
