"""Where a service is: which texts an endpoint may be, and where a credential may be sent."""

import re
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from headwater import limits

_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")


def is_endpoint(value: Any) -> bool:
    """Whether the configuration can hold this as an endpoint (CLI-179, CLI-237)."""
    return isinstance(value, str) and 0 < len(value.encode()) <= limits.ENDPOINT_BYTES and _BLANK.search(value) is None


def is_reachable(endpoint: str) -> bool:
    """Whether a credential may be sent there: over https, and no user, query or fragment in it (CLI-235).

    On this machine itself, by its loopback address, it may be sent without TLS: nobody else is on the way.
    """
    if not is_endpoint(endpoint) or any(character in endpoint for character in "@?#\\"):
        return False
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host or "")))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
