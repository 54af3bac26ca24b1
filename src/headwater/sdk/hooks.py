"""Which hooks an integration implements, and whether their shape is right (INT-134, INT-152)."""

import ast
import inspect
from collections.abc import Iterator
from textwrap import dedent

from headwater.sdk.integration import Integration

NAMES = tuple(name for name, member in vars(Integration).items() if inspect.isfunction(member))


def implemented(integration: type[Integration]) -> tuple[str, ...]:
    """Return the hooks that do something: an inherited one, or one that only raises, does not."""
    return tuple(
        name
        for name in NAMES
        if (hook := getattr(integration, name)) is not getattr(Integration, name) and not _only_raises(hook)
    )


def misshapen(integration: type[Integration]) -> Iterator[str]:
    """Yield each hook whose parameters are not those of the base class."""
    for name in NAMES:
        hook = getattr(integration, name)
        wanted = list(inspect.signature(getattr(Integration, name)).parameters)
        if not callable(hook) or list(inspect.signature(hook).parameters) != wanted:
            yield name


def _only_raises(hook: object) -> bool:
    """Whether a function's body is a docstring, `pass`, `...` or a raised NotImplementedError, and no more."""
    try:
        source = dedent(inspect.getsource(hook))  # type: ignore[arg-type]
    except (OSError, TypeError):
        return False
    (function,) = ast.parse(source).body
    body = getattr(function, "body", [])
    return all(_does_nothing(statement) for statement in body)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return "NotImplementedError" in ast.dump(statement)
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )
