"""Places for credentials: a login keyring on a bus of the tests' own, and sealed files."""

import asyncio
import traceback

import pytest
from servers.keyring import desktop as private_desktop

from headwater.errors import HeadwaterError
from headwater.secret import Secret
from headwater.vault.sealed_file import SealedFileCustody
from headwater.vault.secret_service import SecretServiceCustody

SENTINEL = "s3ntinel-tr3asure"


@pytest.fixture(scope="session")
def shared_desktop():
    """One login for all tests that leave it as it was."""
    with private_desktop() as desktop:
        desktop.log_in()
        yield desktop


@pytest.fixture
def desktop():
    """A bus that a test may do anything to; nobody is logged in yet."""
    with private_desktop() as desktop:
        yield desktop


@pytest.fixture
def sealed(tmp_path):
    """A sealed file that a key file opens."""
    return SealedFileCustody(tmp_path / "custody.sealed", "key_file", lambda: Secret(b"k" * 32))


@pytest.fixture(params=["secret_service", "key_file", "passphrase"])
def custody(request, tmp_path):
    """Each custody that can be written."""
    if request.param == "secret_service":
        return SecretServiceCustody(request.getfixturevalue("shared_desktop").socket)
    return SealedFileCustody(tmp_path / "custody.sealed", request.param, lambda: Secret(b"opens the file" * 3))


def refusal(awaitable, code="custody_unavailable", next_action="unlock_keyring"):
    """Await what has to be refused; return the refusal, in which nothing of the sentinel is found."""
    with pytest.raises(HeadwaterError) as refused:
        asyncio.run(awaitable)
    error = refused.value
    assert (error.code, error.stage, error.next_action) == (code, "custody", next_action)
    assert error.data == {}
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert SENTINEL not in "".join([repr(error), error.message, error.safe, *told.format()])
    assert error.__cause__ is None
    assert error.__context__ is None
    return error
