"""What START may say of each binding of the profile."""

from typing import Any

import pytest

from headwater.collect.bindings import checked
from headwater.errors import HeadwaterError

ADDRESS = "ws://127.0.0.1:39011/devtools/browser/abc"
BROWSER = {"interface": "cdp", "ws_url": ADDRESS}


@pytest.mark.clause("CP-054", "CP-055")
@pytest.mark.parametrize(
    ("name", "descriptor"),
    [
        ("network", {}),
        ("browser_automation", BROWSER),
        ("browser_automation", {**BROWSER, "headed_supported": True}),
        ("browser_profile", {"profile_path": "/home/ada/profile"}),
        ("example.com/gpu", {"cores": 8}),
    ],
)
def test_a_descriptor_of_the_profile_is_announced_as_it_is(name: str, descriptor: dict[str, Any]) -> None:
    """Nothing is added or left out, and what a namespaced one holds is not looked at."""
    assert checked({name: descriptor}) == {name: descriptor}


@pytest.mark.parametrize(
    ("name", "descriptor"),
    [
        *(
            pytest.param("browser_automation", descriptor, marks=pytest.mark.clause("CP-054"))
            for descriptor in (
                {},
                {"interface": "cdp"},
                {"ws_url": ADDRESS},
                {**BROWSER, "interface": "bidi"},
                {**BROWSER, "ws_url": None},
                {**BROWSER, "headed_supported": "no"},
                {**BROWSER, "headed_supported": 0},
            )
        ),
        *(
            pytest.param(name, {"port": 1}, marks=pytest.mark.clause("CP-055"))
            for name in ("filesystem", "network", "interactive", "loopback_listen", "browser_profile")
        ),
        pytest.param("browser_profile", {}, marks=pytest.mark.clause("CP-055")),
        pytest.param("browser_profile", {"profile_path": 1}, marks=pytest.mark.clause("CP-055")),
    ],
)
def test_any_other_descriptor_refuses_the_run_by_name(name: str, descriptor: dict[str, Any]) -> None:
    """Better no run than a connector that is told what it cannot use."""
    with pytest.raises(HeadwaterError) as caught:
        checked({"example.com/gpu": {}, name: descriptor})
    assert (caught.value.code, caught.value.data["bindings"]) == ("binding_unavailable", [name])
    assert name in caught.value.message
