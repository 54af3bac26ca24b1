"""What START may say of each binding of the profile: the last look before a connector is started."""

from collections.abc import Mapping
from typing import Any, Final

from headwater.errors import refuse

_PRESENCE: Final = frozenset({"filesystem", "network", "interactive", "loopback_listen"})


def checked(bindings: Mapping[str, dict[str, Any]]) -> Mapping[str, dict[str, Any]]:
    """Return the bindings, or raise `binding_unavailable` with the names of those whose descriptor is wrong.

    A binding that says no more than that it is there has an empty one (CP-055). What a namespaced binding says is
    between the connector and who configured it.
    """
    wrong = sorted(name for name, descriptor in bindings.items() if not _fits(name, descriptor))
    if wrong:
        message = f"What this host says of {', '.join(wrong)} is not what the profile asks for; nothing was started."
        raise refuse("binding_unavailable", message, bindings=wrong)
    return bindings


def _fits(name: str, descriptor: Mapping[str, Any]) -> bool:
    if name in _PRESENCE:
        return not descriptor
    if name == "browser_profile":
        return descriptor.keys() == {"profile_path"} and isinstance(descriptor["profile_path"], str)
    return name != "browser_automation" or _is_browser(descriptor)


def _is_browser(descriptor: Mapping[str, Any]) -> bool:
    """Whether this is how to reach a browser (CP-054)."""
    headed = descriptor.get("headed_supported", False)
    is_reachable = descriptor.get("interface") == "cdp" and isinstance(descriptor.get("ws_url"), str)
    return is_reachable and isinstance(headed, bool)
