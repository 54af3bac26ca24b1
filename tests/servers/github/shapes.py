"""Objects in the shapes of GitHub's API description: made from its examples, and held to its schemas."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

_DESCRIPTION = json.loads(Path(__file__).with_name("description.json").read_text("utf-8"))
_DEFINITIONS = _DESCRIPTION["$defs"]
_BY_FORMAT = {"date-time": "2011-01-26T19:01:12Z", "uri": "https://github.invalid/", "email": "octocat@github.invalid"}
_BY_TYPE = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": []}


def shaped(shape: str, **members: Any) -> dict[str, Any]:
    """Return an object of a shape with some of its members given; it is as the description has it, or this fails."""
    made = {**json.loads(_sample(shape)), **members}
    for error in _validator(shape).iter_errors(made):
        raise AssertionError(f"{shape}{error.instance_path}: {error.message}")
    return made


@cache
def _validator(shape: str) -> Any:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{shape}", "$defs": _DEFINITIONS})


@cache
def _sample(shape: str) -> str:
    return json.dumps(_made({"$ref": f"#/$defs/{shape}"}))


def _made(schema: dict[str, Any]) -> Any:
    """Make the least value that a schema allows, with its example where it gives one."""
    if "$ref" in schema:
        return _made(_DEFINITIONS[schema["$ref"].removeprefix("#/$defs/")])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _made(schema[key][0])
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        return None
    if kind == "object":
        return {name: _made(schema["properties"][name]) for name in schema.get("required", ())}
    if "example" in schema and kind != "array":
        return schema["example"]
    return schema.get("default", schema.get("enum", [_BY_FORMAT.get(schema.get("format", ""), _BY_TYPE.get(kind))])[0])
