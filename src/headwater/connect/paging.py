"""The cursor of a list of connections: bound to what was listed and as it then stood, and of use for five minutes."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from headwater import limits
from headwater.connect.model import Target
from headwater.errors import refuse


def place(last: str, target: Target, epoch: int, limit: int, now_ms: int) -> str:
    """Return the cursor of the page behind a connection."""
    until = now_ms + limits.CONNECTION_CURSOR_SECONDS * 1000
    bound = [last, target.owner, target.instance_id, target.configuration_revision, epoch, limit, until]
    return urlsafe_b64encode(json.dumps(bound).encode()).decode()


def after(cursor: str, target: Target, epoch: int, limit: int, now_ms: int) -> str:
    """Return the connection that a page begins behind; `stale_cursor` for any other list, or a later time (CLI-329)."""
    try:
        last, *bound, until = json.loads(urlsafe_b64decode(cursor.encode()))
        fits = bound == [target.owner, target.instance_id, target.configuration_revision, epoch, limit]
        if fits and isinstance(last, str) and isinstance(until, int) and now_ms < until:
            return last
    except (ValueError, TypeError, RecursionError):
        pass
    raise refuse("stale_cursor")
