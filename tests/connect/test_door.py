"""What a connector's question gets from custody, and what is still a person's to answer."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from headwater.connect.envelope import Account, Credential, Envelope, opened, sealed
from headwater.errors import refuse
from headwater.joining.door import Door, answer_of
from headwater.secret import Secret
from headwater.wire.messages import Interaction

CREDENTIAL = Credential(Envelope(Secret("t0ken")), {"username": Secret("anna")})


def question(properties=None, required=(), kind="credentials"):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Interaction("q1", kind, "?", schema if properties is not None else msgspec.UNSET)


@pytest.mark.parametrize(
    ("properties", "required", "answer"),
    [
        ({"token": {}}, ["token"], {"token": "t0ken"}),
        ({"access_token": {}}, ["access_token"], {"access_token": "t0ken"}),
        ({"username": {}, "token": {}}, ["username", "token"], {"username": "anna", "token": "t0ken"}),
        ({"username": {}, "nickname": {}}, ["username"], {"username": "anna"}),
        ({"username": {}, "password": {}}, ["username", "password"], None),
        ({"nickname": {}}, [], None),
        ({}, [], None),
        (None, [], None),
        ({"token": {}}, [{}], None),
        ({"refresh_token": {}}, ["refresh_token"], None),
    ],
)
def test_all_that_is_required_or_nothing(properties, required, answer):
    """A refresh token is custody's own: no connector gets it."""
    assert answer_of(question(properties, required), CREDENTIAL) == answer


class Custody:
    """A connection that answers, or refuses."""

    def __init__(self, told):
        self.told = told

    async def credential_for(self, name):
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


class Used:
    credential = CREDENTIAL
    connection = None


class Person:
    """Somebody who answers everything."""

    async def answer(self, question):
        return {"by": "a person"}


def asked(told, question, person=True):
    door = Door(Custody(told), "shop/me").before(Person() if person else None)
    return asyncio.run(door.answer(question))


def test_who_answers():
    """Credentials are custody's where it has them; a code is a person's, and so is what was never connected."""
    token = question({"token": {}}, ["token"])
    assert asked(Used(), token) == {"token": "t0ken"}
    assert asked(Used(), question({"code": {}}, ["code"], "otp")) == {"by": "a person"}
    assert asked(Used(), question({"password": {}}, ["password"])) == {"by": "a person"}
    assert asked(None, token) == {"by": "a person"}
    assert asked(None, token, person=False) is None


def test_nobody_takes_the_place_of_a_connection():
    """One that stopped being usable in the midst of a run is declined, though a person is there."""
    assert asked(refuse("not_granted"), question({"token": {}}, ["token"])) is None


@pytest.mark.parametrize(
    "material", [b"", b"{", b"[]", b'{"fields": {}}', b'{"fields": {}, "envelope": {"access_token": 7}}']
)
def test_what_is_no_credential_is_not_read_as_one(material):
    with pytest.raises(ValueError, match="no credential"):
        opened(Secret(material))


def test_what_custody_keeps_is_read_as_it_was():
    """Each member of an envelope, and each field that is still needed."""
    envelope = Envelope(
        Secret("t"),
        token_type="Bearer",
        expires_at=datetime(2026, 11, 30, 12, tzinfo=UTC),
        refresh_token=Secret("r"),
        scopes=("a", "b"),
        account=Account("1", "user", "Anna"),
        metadata={"region": "eu"},
    )
    whole = Credential(envelope, {"username": Secret("anna")})
    assert opened(sealed(whole)) == whole
