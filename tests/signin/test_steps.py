"""Signing in by steps: each request stands alone, and a connection comes of it at the end and once."""

import asyncio
import inspect
import json
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

import pytest
from signin.granting import SELECTED, connected, declared, host, use
from signin.test_connecting import SHOP, kept

from headwater.connect.failures import AuthFailure
from headwater.connect.flows import Pending
from headwater.errors import HeadwaterError
from headwater.host import Host
from headwater.joining.signing_in import Actor, SigningIn, Wanted
from headwater.secret import Secret

pytestmark = pytest.mark.anyio
ME = Actor("1000")
WANTED = Wanted(SELECTED)
BACK = "http://127.0.0.1:9/back"


class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def consented(url: str) -> dict[str, Secret]:
    """Return the parameters that a browser would bring back."""
    with pytest.raises(HTTPError) as caught:
        build_opener(ProxyHandler({}), NoRedirect).open(url, timeout=20)
    with caught.value as answer:
        return {name: Secret(value) for name, value in parse_qsl(urlsplit(answer.headers["Location"]).query)}


@pytest.fixture
def service(headwater, running) -> Host:
    headwater.set_up(running.url, declared())
    return host(headwater)


async def begun(service: Host, wanted: Wanted = WANTED, actor: Actor = ME) -> tuple[Pending, dict[str, Secret]]:
    pending = await service.signing_in.start(wanted, {}, actor, redirect_uri=BACK)
    assert isinstance(pending, Pending)
    return pending, await asyncio.to_thread(consented, pending.challenge.url)


@pytest.mark.clause("INT-196", "INT-223")
async def test_three_begin_one_ends_and_there_is_one_connection(service, headwater, granting):
    granting.first = 300
    begins = [await begun(service) for _ in range(3)]
    pending, answer = begins[1]
    told = await service.signing_in.complete(WANTED, pending.auth_state, answer, ME)
    shown = service.connecting.describe(SELECTED, None)["connection"]
    assert (told["connection"], shown["state"]) == (shown["connection"], "ready")
    with pytest.raises(HeadwaterError) as caught:  # the instance is occupied: nobody is asked any more
        await service.signing_in.complete(WANTED, begins[0][0].auth_state, begins[0][1], ME)
    assert caught.value.code == "lifecycle_conflict"
    assert kept(headwater) == 1


@pytest.mark.clause("INT-221", "INT-472")
@pytest.mark.parametrize("actor", [Actor("1001"), Actor("1000", "team")])
async def test_nobody_else_ends_what_somebody_began(service, actor, granting):
    pending, answer = await begun(service)
    with pytest.raises(AuthFailure) as caught:
        await service.signing_in.complete(WANTED, pending.auth_state, answer, actor)
    assert caught.value.code == "auth_state_invalid"


@pytest.mark.clause("INT-223")
def test_there_is_no_way_to_enter_fields_or_a_method_anew():
    assert list(inspect.signature(SigningIn.complete).parameters) == ["self", "wanted", "auth_state", "answer", "actor"]


@pytest.mark.clause("INT-221")
async def test_a_sign_in_for_a_connection_is_none_for_its_renewal(service, headwater, running, granting):
    pending, answer = await begun(service)
    await asyncio.to_thread(connected, headwater, running, declared())
    renewal = Wanted(SELECTED, expected_revision="1")
    with pytest.raises(AuthFailure) as caught:
        await service.signing_in.complete(renewal, pending.auth_state, answer, ME)
    assert caught.value.code == "auth_state_invalid"


@pytest.mark.clause("INT-197")
async def test_a_renewal_meets_the_same_account(service, headwater, running, granting):
    granting.first = 300
    await asyncio.to_thread(connected, headwater, running, declared())
    renewal = Wanted(SELECTED, expected_revision="1")
    pending, answer = await begun(service, renewal)
    await service.signing_in.complete(renewal, pending.auth_state, answer, ME)
    assert await asyncio.to_thread(use, headwater) == "sentinel-access-2"
    pending, answer = await begun(service, renewal)
    granting.account = "eve"
    with pytest.raises(HeadwaterError) as caught:
        await service.signing_in.complete(renewal, pending.auth_state, answer, ME)
    assert caught.value.code == "identity_mismatch"
    granting.account = "ada"
    assert await asyncio.to_thread(use, headwater) == "sentinel-access-2"


@pytest.mark.clause("INT-191")
async def test_a_static_token_is_connected_at_once_or_refused(headwater, running, granting):
    document = json.loads((SHOP / "integration.json").read_text())
    document["auth"]["methods"][0]["identity"].update({"path": "/me", "subject": "/sub"})
    headwater.set_up(running.url, document)
    service = host(headwater)
    told = await service.signing_in.start(WANTED, {"token": Secret("sentinel-static")}, ME)
    assert told["connection"] == service.connecting.describe(SELECTED, None)["connection"]["connection"]


async def test_nothing_begins_where_the_place_of_credentials_cannot_be_used(service, headwater, running):
    (headwater.place / "key").unlink()
    with pytest.raises(HeadwaterError) as caught:
        await service.signing_in.start(WANTED, {}, ME, redirect_uri=BACK)
    assert (caught.value.code, running.asked) == ("custody_unavailable", [])
