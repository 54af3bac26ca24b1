"""A keyring that lies: nothing that it says is taken for kept, and nothing of it is repeated."""

import asyncio

import pytest
from servers.keyring import desktop as private_desktop
from vault.conftest import SENTINEL, refusal
from vault.lying_keyring import KINDS, lying_keyring

from headwater import limits
from headwater.secret import Secret
from headwater.vault.secret_service import SecretServiceCustody

run = asyncio.run


@pytest.fixture(scope="module")
def bus():
    """A bus with nobody logged in."""
    with private_desktop() as desktop:
        yield desktop.socket


@pytest.fixture
def custody(bus):
    return SecretServiceCustody(bus)


def write(custody):
    return custody.write_new("con_1", Secret(SENTINEL))


def test_one_that_does_not_lie_is_used(bus, custody):
    with lying_keyring(bus, "honest"):
        version = run(write(custody))
        assert run(custody.read("con_1", version)).text() == SENTINEL
        assert run(custody.delete("con_1", version)) == "deleted"
        run(custody.probe())


@pytest.mark.clause("CLI-402", "CLI-413")
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_is_not_proven_is_unknown(kind, bus, custody, monkeypatch):
    monkeypatch.setattr(limits, "KEYRING_CALL_SECONDS", 0.5)
    with lying_keyring(bus, kind) as keyring:
        error = refusal(write(custody), "outcome_unknown", "retry_status")
        assert keyring.asked.count("CreateItem") == 1
    assert error.safe == "What was to be stored is not used."


@pytest.mark.clause("CLI-401")
@pytest.mark.parametrize("part", [slice(0, -1), slice(None, None, -1), slice(0), slice(1, None), slice(0, 32)])
def test_bytes_that_are_changed_later_are_not_used(part, bus, custody):
    with lying_keyring(bus, "honest") as keyring:
        version = run(write(custody))
        ((path, (attributes, kept)),) = keyring.items.items()
        keyring.items[path] = (attributes, kept[part])
        refusal(custody.read("con_1", version), next_action="repair_connection")


@pytest.mark.clause("INT-244")
@pytest.mark.parametrize("kind", [*KINDS, "prompts", "keeps", "plain", "locked"])
def test_the_write_test_finds_out(kind, bus, custody, monkeypatch):
    monkeypatch.setattr(limits, "KEYRING_CALL_SECONDS", 0.5)
    action = "check_configuration" if kind == "plain" else "unlock_keyring"
    with lying_keyring(bus, kind):
        refusal(custody.probe(), next_action=action)


@pytest.mark.clause("CLI-412")
def test_a_prompt_is_left_alone(bus, custody):
    with lying_keyring(bus, "honest") as keyring:
        version = run(write(custody))
        keyring.kind = "prompts"
        refusal(write(custody))
        refusal(custody.delete("con_1", version))
        assert {"Prompt", "Unlock", "CreateCollection"}.isdisjoint(keyring.asked)
        assert len(keyring.items) == 1


def test_no_secret_crosses_unencrypted(bus, custody):
    with lying_keyring(bus, "plain") as keyring:
        refusal(write(custody), next_action="check_configuration")
        assert "CreateItem" not in keyring.asked


def test_a_locked_one_is_sent_nothing(bus, custody):
    with lying_keyring(bus, "locked") as keyring:
        refusal(write(custody))
        assert keyring.asked == ["Get"]
