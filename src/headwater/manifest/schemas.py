"""JSON Schema 2020-12 for streams and options: checked against its meta-schema, compiled once, offline, formats on.

The library is imported when a schema is first compiled: it takes longer to load than all of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from headwater import limits

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator as Validator

    from headwater.manifest.faults import Reader

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# What a keyword holds, where that is no schema: schemas by name, or data that only looks like one.
_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA: Final = frozenset({"const", "enum", "default", "examples"})
# Keywords whose schemas speak of the same value as the schema that they stand in.
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")

Path = tuple[str | int, ...]


def check_schema(reader: Reader, schema: dict[str, Any]) -> bool:
    """Note what makes a schema unusable at the place being read: dialect, references, meta-schema (CORE-112 to 114).

    A schema that names another dialect or another document is not looked into any further. Return whether it is fit.
    """
    faults = list(_foreign(schema)) or list(_broken(schema))
    for path, rule, message in faults:
        with reader.at(*path):
            reader.fault(rule, message)
    return not faults


def top_level_fields(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the properties that a schema declares for an object, through `allOf` and local `$ref` too."""
    names: set[str] = set()
    seen: set[int] = set()
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping) or id(node) in seen:
            continue
        seen.add(id(node))
        names.update(node.get("properties", ()))
        waiting.extend(part for keyword in _IN_PLACE for part in node.get(keyword, ()))
        waiting.append(_referred(schema, node.get("$ref")))
    return frozenset(names)


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


def _foreign(schema: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    for path, node in _subschemas(schema):
        if "$schema" in node and node["$schema"] != DIALECT:
            yield (*path, "$schema"), "dialect", f"must be absent or {DIALECT}"
        for keyword in ("$ref", "$dynamicRef"):
            target = node.get(keyword)
            if isinstance(target, str) and not target.startswith("#"):
                yield (*path, keyword), "reference", "must be a local fragment, as #/$defs/name"


def _subschemas(schema: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every schema in a schema with its path; a property that is called like a keyword is none."""
    waiting: list[tuple[Path, Any, bool]] = [((), schema, False)]
    while waiting:
        path, node, by_name = waiting.pop()
        if isinstance(node, list):
            waiting.extend(((*path, index), item, False) for index, item in enumerate(node))
        elif isinstance(node, dict):
            if not by_name:
                yield path, node
            waiting.extend(
                ((*path, name), value, not by_name and name in _BY_NAME)
                for name, value in node.items()
                if by_name or name not in _DATA
            )


def _broken(schema: dict[str, Any]) -> Iterator[tuple[Path, str, str]]:
    import jsonschema_rs

    try:
        errors = list(islice(_meta_schema().iter_errors(schema), limits.FAULTS_PER_DOCUMENT))
        for error in errors:
            keyword = error.schema_path[-1] if error.schema_path else "schema"
            yield tuple(error.instance_path), "schema", f"breaks the rule `{keyword}` of JSON Schema 2020-12"
        if not errors:
            compile_schema(schema)
    except jsonschema_rs.ValidationError as error:
        message = "has a pattern that is no regular expression, or a reference to nothing"
        yield tuple(error.instance_path), "schema", message
    except (jsonschema_rs.ReferencingError, ValueError, RecursionError):
        yield (), "schema", "has a reference to nothing, or a value that JSON Schema does not have"


@cache
def _meta_schema() -> Validator:
    return compile_schema({"$ref": DIALECT})


def _referred(root: Mapping[str, Any], reference: object) -> Any:
    """Return what a local pointer leads to, None where it leads nowhere or is none."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    node: Any = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    return node
