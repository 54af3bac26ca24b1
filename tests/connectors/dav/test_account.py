"""Where a password may go."""

import pytest

from headwater.connectors.dav.account import is_admitted
from headwater.connectors.web.client import origin_of


@pytest.mark.parametrize(
    ("endpoint", "other", "admitted"),
    [
        ("https://caldav.icloud.com", "https://caldav.icloud.com:443/x", True),
        ("https://caldav.icloud.com", "https://p42-caldav.icloud.com:443", True),
        ("https://caldav.icloud.com", "https://a.b.icloud.com", True),
        ("https://caldav.icloud.com", "http://p42-caldav.icloud.com", False),
        ("https://caldav.icloud.com", "https://icloud.com.evil.test", False),
        ("https://caldav.icloud.com", "https://evilicloud.com", False),
        ("https://example.org", "https://other.org", False),
        ("https://192.0.2.1", "https://5.0.2.1", False),
        ("https://dav.example.org:8443", "https://dav.example.org", True),
        ("http://127.0.0.1:5232", "http://127.0.0.1:5233", False),
        ("http://dav.example.org", "https://a.example.org", False),
        ("https://dav.example.org", "", False),
    ],
)
def test_where_a_password_may_go(endpoint: str, other: str, admitted: bool) -> None:
    """To the endpoint, and over https to hosts beside it."""
    assert is_admitted(endpoint, origin_of(other)) is admitted
