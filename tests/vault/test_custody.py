"""The laws of the `Custody` port, held by every adapter that can be written."""

import asyncio

import pytest
from vault.conftest import SENTINEL, refusal

from headwater import limits
from headwater.secret import Secret

run = asyncio.run


@pytest.mark.parametrize("material", [b"\0", b"x" * limits.CUSTODY_BYTES, bytes(range(256)), SENTINEL.encode()])
def test_what_is_written_is_read_byte_for_byte(custody, material):
    version = run(custody.write_new("con_1", Secret(material)))
    assert run(custody.read("con_1", version)).reveal() == material


@pytest.mark.clause("CLI-413")
@pytest.mark.parametrize("size", [0, limits.CUSTODY_BYTES + 1])
def test_a_version_has_1_to_65536_bytes(custody, size):
    error = refusal(custody.write_new("con_1", Secret(b"x" * size)), "capacity", "none")
    assert error.safe == "Nothing was stored."


@pytest.mark.clause("CLI-401")
def test_a_new_version_leaves_the_old_one_as_it_is(custody):
    old = run(custody.write_new("con_1", Secret("old")))
    new = run(custody.write_new("con_1", Secret("new")))
    same = run(custody.write_new("con_1", Secret("new")))
    assert len({old, new, same}) == 3
    assert [run(custody.read("con_1", version)).text() for version in (old, new, same)] == ["old", "new", "new"]


@pytest.mark.clause("CLI-401")
def test_a_version_belongs_to_its_connection(custody):
    version = run(custody.write_new("con_1", Secret(SENTINEL)))
    refusal(custody.read("con_2", version), next_action="repair_connection")
    assert run(custody.delete("con_2", version)) == "missing"
    assert run(custody.read("con_1", version)).text() == SENTINEL


@pytest.mark.clause("CLI-401")
def test_deleting_takes_one_version_and_can_be_repeated(custody):
    gone = run(custody.write_new("con_1", Secret(SENTINEL)))
    kept = run(custody.write_new("con_1", Secret("kept")))
    assert [run(custody.delete("con_1", gone)) for _ in range(2)] == ["deleted", "missing"]
    refusal(custody.read("con_1", gone), next_action="repair_connection")
    assert run(custody.read("con_1", kept)).text() == "kept"


@pytest.mark.parametrize("version", ["", "ver_unknown", "../../etc/passwd", "*", "x" * 5000, "ver\x01"])
def test_a_version_that_never_was_is_missing(custody, version):
    refusal(custody.read("con_1", version), next_action="repair_connection")
    assert run(custody.delete("con_1", version)) == "missing"


@pytest.mark.clause("INT-244")
def test_the_write_test_leaves_nothing(custody):
    version = run(custody.write_new("con_1", Secret("kept")))
    run(custody.probe())
    run(custody.probe())
    assert run(custody.read("con_1", version)).text() == "kept"
    assert not custody.read_only


def test_it_can_be_looked_at(custody):
    assert run(custody.state()) == "available"
    version = run(custody.write_new("con_1", Secret("kept")))
    assert run(custody.state()) == "available"
    assert run(custody.read("con_1", version)).text() == "kept"


def test_many_at_once_lose_nothing(custody):
    async def crowd():
        return await asyncio.gather(*(custody.write_new(f"con_{n}", Secret(f"material {n}")) for n in range(8)))

    async def look(versions):
        return await asyncio.gather(*(custody.read(f"con_{n}", version) for n, version in enumerate(versions)))

    assert [found.text() for found in run(look(run(crowd())))] == [f"material {n}" for n in range(8)]
