"""The hooks of an integration's code: how it is loaded, and which of them it implements."""

import importlib.util
import inspect
import sys
from pathlib import Path

from headwater.sdk.integration import Integration

NAMES = tuple(name for name, member in vars(Integration).items() if inspect.isfunction(member))


def loaded(folder: Path) -> type[Integration]:
    """Return the one class of a folder's `integration.py` that is an integration; exit where there is none."""
    spec = importlib.util.spec_from_file_location("integration", folder / "integration.py")
    if spec is None or spec.loader is None:
        raise SystemExit("integration.py cannot be loaded")
    sys.path.insert(0, str(folder))
    module = importlib.util.module_from_spec(spec)
    sys.modules["integration"] = module
    spec.loader.exec_module(module)
    found = [
        member
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Integration) and member.__module__ == "integration"
    ]
    if len(found) != 1:
        raise SystemExit("integration.py must hold one class that derives from Integration")
    return found[0]


def implemented(integration: type[Integration]) -> tuple[str, ...]:
    """Return the names of the hooks that a class overrides: those that it does not inherit."""
    return tuple(name for name in NAMES if getattr(integration, name) is not getattr(Integration, name))
