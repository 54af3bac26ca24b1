"""When a validation that failed is tried once more (CLI-481 to 484)."""

from headwater import limits


def pause_after(attempt: int, *, transient: bool, last_seconds: float, left_seconds: float) -> float | None:
    """Return how long to wait before the next attempt; None where there is none.

    There is one only after a failure that passes by itself, and where the wait, an attempt as long as the last one and
    a margin all fit before the deadline.
    """
    if not transient or attempt >= limits.VALIDATION_ATTEMPTS:
        return None
    pause = limits.VALIDATION_PAUSE_SECONDS if attempt == 1 else limits.VALIDATION_LAST_PAUSE_SECONDS
    return pause if pause + last_seconds + limits.VALIDATION_MARGIN_SECONDS <= left_seconds else None
