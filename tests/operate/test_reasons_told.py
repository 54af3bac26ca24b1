"""What a provider says of its refusal, as it is told: beside a failure that is the same without it."""

import asyncio
import json

import pytest
from operate.desk import TOKEN, failure_of
from signin.provider import Reply, provider

from headwater.connect.envelope import Credential, Envelope
from headwater.manifest.auth import Field, Method
from headwater.operate.planning import Request
from headwater.outbound.asking import Asking
from headwater.outbound.client import Client, Reach
from headwater.secret import Secret

ORDERS = "/orders"


def reason_of(method: Method, credential: Credential, message: str) -> str | None:
    """Return the reason that is told of a refusal."""
    with provider(lambda _: Reply(status=403, body={"message": message})) as running:
        asking = Asking(Client(Reach(private=True)), running.url, method, credential)
        return asyncio.run(asking.send(Request("GET", "/orders", {}, b""), 10)).reason


@pytest.mark.clause("CLI-1100")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_why_a_provider_refuses_is_told_beside_the_failure_that_it_is_anyway(desk, status):
    desk.replies[ORDERS] = Reply(status=status, body={"detail": "missing scope read"})
    bare = desk.refused()
    desk.replies[ORDERS] = Reply(status=status, body={"message": "missing  scope read"})
    told = desk.refused()
    assert (failure_of(told), told.message) == (failure_of(bare), bare.message)
    assert (bare.data.get("service_reason"), told.data["service_reason"]) == (None, "missing scope read")


@pytest.mark.clause("CLI-1100")
@pytest.mark.parametrize("status", [200, 302])
def test_what_is_no_refusal_has_no_reason(desk, status):
    desk.replies[ORDERS] = Reply(status=status, body={"message": "missing scope read"})
    assert "service_reason" not in desk.refused().data


@pytest.mark.clause("CLI-1109", "CLI-1110")
@pytest.mark.parametrize("echo", [TOKEN, TOKEN[6:14], TOKEN.upper(), "t o k e n o f a", "%74oken-of", f"({TOKEN})"])
def test_a_reason_that_repeats_what_was_sent_is_withheld(desk, echo):
    desk.replies[ORDERS] = Reply(status=403, body={"message": f"no {echo} here"})
    error = desk.refused()
    assert error.code == "forbidden"
    assert "service_reason" not in error.data


@pytest.mark.clause("CLI-1110")
@pytest.mark.parametrize("echo", ["YW5uYTpz", "s3same op", "ann-a", "inner te"])
def test_so_is_one_that_repeats_what_that_was_made_of(echo):
    fields = {"name": Secret("anna"), "key": Secret(json.dumps({"k": ["inner text"]}))}
    pair = Method("basic", "Pair", "token", (Field("name", "Name", "text"),), scheme="basic")
    credential = Credential(Envelope(Secret("s3same open"), refresh_token=Secret("renewing")), fields)
    assert reason_of(pair, credential, "no scope") == "no scope"
    assert reason_of(pair, credential, f"no {echo}") is None
    assert reason_of(pair, credential, "re-ne-wi-ng") is None


@pytest.mark.parametrize("name", ["X-Token", "x-token", "X-TOKEN"])
def test_a_definition_cannot_put_its_own_in_the_place_of_a_credential(name):
    """Whatever the case of the letters, the header is sent once, and holds the credential."""
    fields = (Field("token", "Token", "token"),)
    method = Method("key", "Key", "token", fields, scheme="token", header="X-Token", prefix="")
    credential = Credential(Envelope(Secret(TOKEN)), {"token": Secret(TOKEN)})
    with provider(lambda _: Reply(body={})) as running:
        asking = Asking(Client(Reach(private=True)), running.url, method, credential)
        asyncio.run(asking.send(Request("GET", "/orders", {name: "forged"}, b""), 10))
    assert running.asked[0].headers["x-token"] == TOKEN
