"""A database of a newer program is refused alike by a command and by the owner that it asks, and is left as it is."""

from hashlib import sha256

import pytest
from migrations.test_writer import marked

from headwater.errors import HeadwaterError
from headwater.link.owner import ask
from headwater.store.sqlite.database import open_database
from headwater.version import RELEASE


def content(path):
    return sha256(path.read_bytes()).hexdigest()


@pytest.mark.clause("CLI-092")
def test_what_an_owner_relays_reads_as_what_a_command_says_itself(machine, acme):
    """By the commands that read the database themselves, with an owner or without, and by those that ask one."""
    machine.instance("a", acme.endpoint)
    named = ("--connector", "acme_tickets", "--instance", "a")
    database = marked(machine.state / "headwater.db", "99.0.0", "0" * 64)
    before = content(database)

    def told(*words):
        data = machine.type(*words, *named, status=1)
        assert data.pop("request_id")
        return data

    with pytest.raises(HeadwaterError) as direct:
        open_database(database)
    alone = told("connections", "list")
    machine.start()
    beside, relayed = told("connections", "list"), told("instances", "status")
    with pytest.raises(HeadwaterError) as caught:
        ask(machine.place, "status", selection=["acme_tickets", "a", None])
    assert str(caught.value) == str(direct.value)
    assert alone == beside == relayed
    assert (alone["code"], alone["store_version"], alone["binary_version"]) == (
        "metadata_schema_newer",
        "99.0.0",
        RELEASE,
    )
    assert content(database) == before
