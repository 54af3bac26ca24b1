"""The custody that was chosen, or none: nothing stands in for another."""

import asyncio
import sys
from pathlib import Path

import pytest
from vault.conftest import SENTINEL, refusal

from headwater import limits
from headwater.errors import HeadwaterError
from headwater.secret import Secret
from headwater.vault.choosing import Choice, SealedFile, custody_for, sealed_file
from headwater.vault.mounted import MountedCustody
from headwater.vault.secret_service import SecretServiceCustody

run = asyncio.run


def write(custody):
    return custody.write_new("con_1", Secret(SENTINEL))


@pytest.fixture
def opener(tmp_path):
    """A key file."""
    file = tmp_path / "key"
    file.write_bytes(b"k" * 32)
    file.chmod(0o600)
    return file


def test_each_binding_is_its_own():
    assert isinstance(custody_for(Choice()), SecretServiceCustody)
    assert isinstance(custody_for(Choice("secret_service", None, Path("/run/bus"))), SecretServiceCustody)
    assert isinstance(custody_for(Choice("mounted_secret", Path("/run/secrets"))), MountedCustody)


@pytest.mark.clause("CLI-410", "CLI-404")
def test_a_mounted_folder_that_is_not_selected_is_not_read(tmp_path):
    """The keyring is down, and the credential lies in a folder that nobody selected."""
    (tmp_path / "forge").mkdir()
    (tmp_path / "forge" / "token").write_text(SENTINEL)
    custody = custody_for(Choice(secret_service_socket=tmp_path / "no-bus"))
    refusal(custody.read("con_1", "forge/token@0"))
    refusal(custody.probe())
    refusal(write(custody))
    assert [path.name for path in tmp_path.rglob("*")] == ["forge", "token"]


@pytest.mark.parametrize("binding", ["windows_credential_manager", "macos_keychain"])
def test_another_platforms_binding_is_unavailable_here(binding):
    assert sys.platform == "linux"

    async def chosen():
        custody_for(Choice(binding))

    refusal(chosen(), next_action="check_configuration")


TWO = [
    Choice("mounted_secret"),
    Choice("secret_service", Path("/run/secrets")),
    Choice(None, Path("/run/secrets")),
    Choice("mounted_secret", Path("/run/secrets"), Path("/run/bus")),
    Choice("secret_service", sealed=SealedFile(Path("/x"))),
    Choice(secret_service_socket=Path("/run/bus"), sealed=SealedFile(Path("/x"))),
]


@pytest.mark.parametrize("choice", TWO)
def test_half_a_choice_and_two_choices_are_refused(choice):
    with pytest.raises(HeadwaterError, match="custody") as refused:
        custody_for(choice)
    assert (refused.value.code, refused.value.exit_status) == ("invalid_configuration", 2)


def test_a_key_file_opens_a_sealed_file(tmp_path, opener):
    choice = Choice(
        sealed=sealed_file({"binding": "sealed_file", "file": str(tmp_path / "s"), "key_file": str(opener)})
    )
    version = run(write(custody_for(choice)))
    assert run(custody_for(choice).read("con_1", version)).text() == SENTINEL


@pytest.mark.parametrize("behind", ["", "\n", "\r\nwhat an editor left\n"])
def test_a_passphrase_is_the_first_line_of_its_file(behind, tmp_path, opener):
    opener.write_text(f"a long passphrase{behind}", newline="")
    custody = custody_for(Choice(sealed=SealedFile(tmp_path / "s", passphrase_file=opener)))
    version = run(write(custody))
    asked = custody_for(Choice(sealed=SealedFile(tmp_path / "s")), lambda label: Secret("a long passphrase"))
    assert run(asked.read("con_1", version)).text() == SENTINEL


@pytest.mark.parametrize(("again", "fits"), [("a long passphrase", True), ("a long passhprase", False), ("", False)])
def test_the_passphrase_of_a_new_file_is_entered_twice(again, fits, tmp_path):
    answers = {"Passphrase of the sealed file": "a long passphrase", "The same passphrase again": again}
    asked = []

    def ask(label):
        asked.append(label)
        return Secret(answers[label])

    async def chosen_and_written():
        await write(custody_for(Choice(sealed=SealedFile(tmp_path / "s")), ask))

    if not fits:
        refusal(chosen_and_written())
        assert list(tmp_path.iterdir()) == []
        return
    run(chosen_and_written())
    run(chosen_and_written())
    assert asked == [*answers, "Passphrase of the sealed file"]


def test_an_empty_passphrase_opens_nothing(tmp_path):
    refusal(write(custody_for(Choice(sealed=SealedFile(tmp_path / "s")), lambda label: Secret(""))))
    assert list(tmp_path.iterdir()) == []


def test_nobody_is_asked_for_what_stands_in_a_file(tmp_path, opener):
    def ask(label):
        raise AssertionError(label)

    for choice in (Choice(), Choice(sealed=SealedFile(tmp_path / "s", opener))):
        custody_for(choice, ask)


def test_without_anybody_to_ask_a_sealed_file_stays_shut(tmp_path):
    refusal(write(custody_for(Choice(sealed=SealedFile(tmp_path / "s")))))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["missing", "short", "large", "open to others", "linked"])
def test_a_key_file_that_is_not_safe_is_refused(kind, tmp_path, opener):
    match kind:
        case "missing":
            opener.unlink()
        case "short":
            opener.write_bytes(b"k" * 31)
        case "large":
            opener.write_bytes(b"k" * (limits.KEY_FILE_BYTES + 1))
        case "open to others":
            opener.chmod(0o640)
        case "linked":
            opener.rename(tmp_path / "elsewhere")
            opener.symlink_to(tmp_path / "elsewhere")
    refusal(write(custody_for(Choice(sealed=SealedFile(tmp_path / "s", opener)))), next_action="check_configuration")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("content", ["", "\n", "\nthe second line\n"])
def test_a_passphrase_file_without_a_passphrase_is_refused(content, tmp_path, opener):
    opener.write_text(content)
    choice = Choice(sealed=SealedFile(tmp_path / "s", passphrase_file=opener))
    refusal(write(custody_for(choice)), next_action="check_configuration")


def test_the_table_of_a_sealed_file():
    table = {"binding": "sealed_file", "file": "/a", "passphrase_file": "/b"}
    assert sealed_file(table) == SealedFile(Path("/a"), None, Path("/b"))
    assert sealed_file({"binding": "sealed_file", "file": "/a"}) == SealedFile(Path("/a"))


@pytest.mark.parametrize(
    "change",
    [
        {"binding": "secret_service"},
        {"binding": None},
        {"file": "relative"},
        {"file": 1},
        {"file": None},
        {"key_file": "relative"},
        {"key_file": ""},
        {"key_file": "/k", "passphrase_file": "/p"},
        {"passphrase": "/typed here"},
        {"directory": "/d"},
    ],
)
def test_a_table_that_does_not_fit_is_refused_without_what_it_holds(change):
    table = {"binding": "sealed_file", "file": "/a"} | change
    with pytest.raises(HeadwaterError) as refused:
        sealed_file({name: value for name, value in table.items() if value is not None})
    assert refused.value.code == "invalid_configuration"
    assert "typed" not in refused.value.message
