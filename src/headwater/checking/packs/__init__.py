"""The packs of a check, by name: each tries the connector in one way and says what that shows.

A pack is a coroutine over the bench and the trial of the whole run. It may run the connector as often as it needs;
the rules that any run may break (`headwater.checking.rules`) are judged for all trials together, once.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from headwater.checking.bench import Bench, Trial
from headwater.checking.findings import Finding
from headwater.checking.packs.cancelled import cancelled
from headwater.checking.packs.determinism import determinism
from headwater.checking.packs.kill import kill
from headwater.checking.packs.narrowed import narrowed
from headwater.checking.packs.network import no_network
from headwater.checking.packs.otp import otp
from headwater.checking.packs.resumed import resumed
from headwater.checking.packs.slow import slow
from headwater.checking.packs.start import start

Pack = Callable[[Bench, Trial], Awaitable[list[Finding]]]

PACKS: Final[dict[str, Pack]] = {
    "start": start,
    "resumed": resumed,
    "determinism": determinism,
    "narrowed": narrowed,
    "kill": kill,
    "slow": slow,
    "cancelled": cancelled,
    "otp": otp,
    "no-network": no_network,
}
