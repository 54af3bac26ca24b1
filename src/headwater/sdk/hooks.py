"""Which hooks an integration implements: those that it does not inherit."""

import inspect

from headwater.sdk.integration import Integration

NAMES = tuple(name for name, member in vars(Integration).items() if inspect.isfunction(member))


def implemented(integration: type[Integration]) -> tuple[str, ...]:
    """Return the names of the hooks that a class overrides."""
    return tuple(name for name in NAMES if getattr(integration, name) is not getattr(Integration, name))
