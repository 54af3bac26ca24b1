"""Operations by an integration's own code: declared beside the hooks, said to the host first, run by their names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

_SAID: Final = "__headwater_operation__"
Method = TypeVar("Method", bound=Callable[..., Any])


def operation(
    name: str,
    *,
    description: str,
    input: Mapping[str, Any],  # noqa: A002 - the word of the contract, as an author writes it
    output: Mapping[str, Any],
    effect: Literal["read", "write"] = "read",
    contract: str | None = None,
    profiles: Sequence[str] = (),
    scopes: Sequence[str] = (),
    walk: Mapping[str, Any] | None = None,
) -> Callable[[Method], Method]:
    """Make a method `(self, ctx, given)` an operation: something that a person or a program can ask of the service.

    `input` and `output` are JSON schemas of what it is given, an object, and of what it returns. `profiles` are the
    sign-in methods that serve it, all where none is named; `scopes` is what the credential needs. `walk` says how its
    pages follow one another, as in `operations.toml`.
    """
    said: dict[str, Any] = {
        "description": description,
        "effect": effect,
        "input": dict(input),
        "output": dict(output),
        "contract": contract,
        "profiles": list(profiles) or None,
        "scopes": list(scopes) or None,
        "walk": None if walk is None else dict(walk),
    }

    def declare(method: Method) -> Method:
        setattr(method, _SAID, (name, {member: value for member, value in said.items() if value is not None}))
        return method

    return declare


def said(integration: type) -> dict[str, Mapping[str, Any]]:
    """Return what a class says of its operations, by their names."""
    return {name: told for name, told in (getattr(one, _SAID, (None, {})) for one in _own(integration)) if name}


def method_of(integration: object, name: str) -> Callable[..., Any] | None:
    """Return the method of an operation, None where there is none."""
    for one in _own(type(integration)):
        if getattr(one, _SAID, (None,))[0] == name:
            return one.__get__(integration)  # type: ignore[no-any-return]
    return None


def _own(integration: type) -> list[Any]:
    return [one for one in vars(integration).values() if callable(one)]
