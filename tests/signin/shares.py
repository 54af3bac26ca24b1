"""A process among several of one owner: `shares.py claim|attempt DATABASE COUNT`. It prints what it was given."""

import json
import sys
from pathlib import Path

from headwater.connect.auth_state import Subject
from headwater.connect.failures import AuthFailure
from headwater.connect.throttle import Attempt, OwnCounters, Throttle
from headwater.store.sqlite.signing_in import SignInStore

ATTEMPT = Attempt(Subject("provider.example", "password", "1000", "1000"), "ada@example.org")


def admitted(throttle: Throttle, attempt: Attempt, now_ms: int) -> int:
    """Return the wait that an attempt is given, 0 where it is admitted."""
    try:
        throttle.admit(attempt, now_ms)
    except AuthFailure as failure:
        return failure.retry_after or 0
    return 0


if __name__ == "__main__":
    what, path, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    store = SignInStore(path)
    if what == "claim":
        print(json.dumps([store.claim(f"state-{number}", 2**50, 0) for number in range(count)]))
    else:
        throttle = Throttle(OwnCounters(), store)
        print(json.dumps([admitted(throttle, ATTEMPT, 1_000 + number) for number in range(count)]))
