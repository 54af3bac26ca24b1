"""What Headwater stands on that only the operating system can give: seven guarantees, and how far each holds where.

On Linux they are given and tested. No other system was tried, so that nothing is claimed of one: what would need a
guarantee is refused there (`docs/reference/platforms.md`).
"""

import sys
from collections.abc import Mapping
from typing import Final

from headwater.errors import refuse

HOLDS: Final = "holds"

LINUX: Final[Mapping[str, str]] = {
    "sealed_executable": "measured_before_start",
    "parent_death_kill": HOLDS,
    "exact_process_signal": HOLDS,
    "own_image_build_measure": "sizes_and_times",
    "atomic_no_replace_rename": HOLDS,
    "atomic_close_on_exec": HOLDS,
    "peer_credential_snapshot": HOLDS,
}
"""Each guarantee: that it holds, or the weaker form that is in its place.

`measured_before_start`: a consumer's program is sealed; a connector's files, which an interpreter reads, are compared
with what was added, and are not copied. `sizes_and_times`: a build is told apart by those of its files, because an
interpreter runs them and no image of its own. `input_closed`: a child sees the end of its input, and is not killed.
"""


def held() -> Mapping[str, str]:
    """Return how far each guarantee holds on this system; nothing where it was never tried."""
    if not is_tried():
        return {}
    from shutil import which

    return LINUX if which("setpriv") is not None else {**LINUX, "parent_death_kill": "input_closed"}


def is_tried() -> bool:
    """Whether this is a system that the tests run on."""
    return sys.platform == "linux"


def admit_system() -> None:
    """Raise `unsupported` where nothing is guaranteed (CLI-964)."""
    if not is_tried():
        message = f"This needs what only Linux is known to guarantee, and the system is {sys.platform}."
        raise refuse("unsupported", message, safe="Nothing was read, sent or changed.")
