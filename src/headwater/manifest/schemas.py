"""JSON Schema 2020-12 for streams and options: compiled once, offline, formats on.

The library is imported when a schema is first compiled: it takes longer to load than all of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator as Validator

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what makes a schema unusable: its dialect, a reference that leaves it, the meta-schema."""
    import jsonschema_rs

    dialect = schema.get("$schema", _DIALECT)
    if not isinstance(dialect, str) or dialect.rstrip("#") != _DIALECT:
        yield "$schema must be absent or the 2020-12 dialect"
        return
    for reference in _references(schema):
        if isinstance(reference, str) and not reference.startswith("#"):
            yield "$ref and $dynamicRef must be local fragments"
            return
    try:
        compile_schema(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, RecursionError):
        yield "is not a valid JSON Schema 2020-12"


def compile_schema(schema: Mapping[str, Any]) -> Validator:
    """Compile a schema; nothing is fetched, whatever it refers to."""
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(dict(schema), validate_formats=True, offline=True)


def explain(validator: Validator, value: Any) -> str:
    """Say where a value breaks its schema, by place and rule and never by content."""
    for error in validator.iter_errors(value):
        place = "".join(f"/{part}" for part in error.instance_path) or "/"
        keyword = str(error.schema_path[-1]) if error.schema_path else "schema"
        return f"{place} breaks the rule `{keyword}` of the stream's schema"
    return "breaks the stream's schema"


def _references(node: Any) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            yield from (item[name] for name in ("$ref", "$dynamicRef") if name in item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
