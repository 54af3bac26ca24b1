"""Which hooks and operations an integration's source has, told by its text alone: no code runs (INT-108, INT-134).

Both stand in the one class of `integration.py` that derives from `Integration`; an operation is a method that is
decorated with `operation` and its name.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from headwater.manifest.capabilities import standard
from headwater.manifest.faults import Fault
from headwater.manifest.integration import Integration

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "start_auth": ("method", "fields"),
    "complete_auth": ("method", "state", "answer"),
    "refresh_credential": ("envelope",),
    "get_account": (),
    "list_groups": ("cursor",),
    "list_events": ("cursor",),
    "list_ticket_inventory": ("cursor",),
    "configure": ("values",),
    "quote": ("order",),
    "fulfill": ("order", "idempotency_key"),
    "get_fulfillment": ("reference",),
    "cancel_fulfillment": ("reference",),
    "verify_webhook": ("headers", "body"),
    "map_webhook": ("body",),
    "disconnect": (),
}
_OPERATION: Final = ("self", "ctx", "given")
_CHALLENGED: Final = {"verification_code", "oauth"}
# What any integration may have, whatever it declares.
_FREE: Final = {"complete_auth", "disconnect"}


def hook_faults(integration: Integration, source: bytes | None) -> list[Fault]:
    """Return what is wrong between a manifest and its code; `source` is None where there is no code."""
    if source is None:
        missing = sorted(_needed(integration))
        return [Fault("/capabilities", "hook", f"needs {name} in integration.py") for name in missing]
    try:
        tree = ast.parse(source)
        return [*_faults(integration, dict(_hooks(tree))), *_operation_faults(tree)]
    except (SyntaxError, ValueError, RecursionError):
        return [Fault("", "source", "integration.py is not valid Python")]


def implemented(source: bytes) -> frozenset[str]:
    """Return the hooks that a source implements; nothing where it cannot be read."""
    try:
        return frozenset(name for name, _ in _hooks(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()


def operations_of(source: bytes) -> frozenset[str]:
    """Return the names of the operations that a source has; nothing where it cannot be read."""
    try:
        return frozenset(name for name, _ in _operations(ast.parse(source)) if name is not None)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()


def _faults(integration: Integration, found: Mapping[str, tuple[str, ...]]) -> Iterator[Fault]:
    needed = _needed(integration)
    for name in sorted(needed - found.keys()):
        pointer = "/actions/configure" if name == "configure" else "/capabilities"
        yield Fault(pointer, "hook", f"needs {name} in integration.py")
    for name, parameters in sorted(found.items()):
        if name not in needed and name not in _FREE | _optional(integration):
            yield Fault("/capabilities", "hook", f"{name} is implemented and no capability here is for it")
        if parameters != ("self", "ctx", *_PARAMETERS[name]):
            wanted = ", ".join(("self", "ctx", *_PARAMETERS[name]))
            yield Fault("", "signature", f"{name} must take ({wanted})")


def _needed(integration: Integration) -> set[str]:
    """Return the hooks that must be there. Where no code signs in, the host reads accounts and refreshes itself."""
    known = standard()
    names = {hook for name in integration.capabilities if name in known for hook in known[name].hooks}
    if integration.needs_hooks:
        names.add("start_auth")
        hooked = (method for method in integration.methods.values() if method.scheme == "hooks")
        if any(method.flow in _CHALLENGED for method in hooked):
            names.add("complete_auth")
    else:
        names -= {"get_account", "refresh_credential"}
    return names | ({"configure"} if "configure" in integration.actions else set())


def _optional(integration: Integration) -> set[str]:
    known = standard()
    return {hook for name in integration.capabilities if name in known for hook in known[name].optional_hooks}


def _hooks(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the hooks that do something, with their parameters."""
    for function in _methods(tree):
        if function.name in _PARAMETERS and not all(map(_does_nothing, function.body)):
            yield function.name, _parameters(function.args)


def _operations(tree: ast.Module) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    """Yield the operations, each by its name, None where that is not written out, and with its parameters."""
    for function in _methods(tree):
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and _name(decorator.func) == "operation":
                first = decorator.args[0] if decorator.args else None
                name = first.value if isinstance(first, ast.Constant) else None
                yield name if isinstance(name, str) else None, _parameters(function.args)


def _operation_faults(tree: ast.Module) -> Iterator[Fault]:
    seen: set[str] = set()
    for name, parameters in _operations(tree):
        if name is None:
            yield Fault("", "operation", "an operation's name must stand in its decorator, as a text")
            continue
        if name in seen:
            yield Fault("", "operation", f"{name} is the name of two operations")
        if parameters != _OPERATION:
            yield Fault("", "signature", f"{name} must take ({', '.join(_OPERATION)})")
        seen.add(name)


def _methods(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    members = [one for node in classes if any(_name(base) == "Integration" for base in node.bases) for one in node.body]
    return (one for one in members if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    """Return the names of a function's parameters; a star where it takes any."""
    named = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    extra = [*arguments.kwonlyargs, *(one for one in (arguments.vararg, arguments.kwarg) if one)]
    return (*named, *(f"*{argument.arg}" for argument in extra))


def _name(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def _does_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, `pass`, `...` or a raised NotImplementedError."""
    if isinstance(statement, ast.Raise):
        return "NotImplementedError" in ast.dump(statement)
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)
