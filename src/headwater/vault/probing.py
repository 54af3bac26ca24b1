"""The write test: custody shows that it can write, read back and erase, before a person is asked to consent."""

from headwater import clock
from headwater.connect.ports import Custody
from headwater.errors import OperationalError
from headwater.secret import Secret
from headwater.vault.refusals import unavailable

_SCOPE = "probe"


async def probe(custody: Custody) -> None:
    """Raise `custody_unavailable` unless a new version can be written, read back and erased (INT-244).

    Each call of a custody says its own refusal; a write whose outcome is not known is one that cannot be relied on.
    """
    material = Secret(clock.token())
    failure = unavailable("The place of the credentials did not keep what was written to it for a test.")
    try:
        version = await custody.write_new(_SCOPE, material)
        kept = await custody.read(_SCOPE, version)
        if await custody.delete(_SCOPE, version) == "deleted" and kept == material:
            return
    except OperationalError as refusal:
        if refusal.code != "outcome_unknown":
            failure = refusal
    raise failure
