"""Derive description.json from GitHub's OpenAPI description: the shapes that the provider answers with, and no more.

python derive.py api.github.com.json
"""

import json
import sys
from pathlib import Path
from typing import Any

SHAPES = (
    "private-user",
    "repository",
    "full-repository",
    "starred-repository",
    "issue",
    "pull-request",
    "issue-comment",
    "release",
    "basic-error",
)
_PREFIX = "#/components/schemas/"
_LEFT_OUT = {"description", "title", "externalDocs", "discriminator"}


def derived(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the shapes with all that they refer to, as JSON Schema."""
    schemas, kept, waiting = whole["components"]["schemas"], {}, list(SHAPES)
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = slim(schemas[name], waiting)
    info = {"title": whole["info"]["title"], "version": whole["info"]["version"]}
    return {"info": info, "$defs": dict(sorted(kept.items()))}


def slim(schema: Any, waiting: list[str]) -> Any:
    """Return a schema without its prose, in the words of JSON Schema; a shape that it refers to waits for its turn."""
    if isinstance(schema, list):
        return [slim(item, waiting) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_PREFIX)
        waiting.append(name)
        return {"$ref": f"#/$defs/{name}"}
    kept = {
        name: {key: slim(inner, waiting) for key, inner in item.items()}
        if name == "properties"
        else slim(item, waiting)
        for name, item in schema.items()
        if name not in _LEFT_OUT and not name.startswith("x-")
    }
    return nullable(kept) if kept.pop("nullable", False) else kept


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Say in JSON Schema what OpenAPI 3.0 says with `nullable`."""
    if "type" not in schema:
        return {"anyOf": [{"type": "null"}, schema]}
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    return {**schema, "type": [schema["type"], "null"]}


if __name__ == "__main__":
    described = derived(json.loads(Path(sys.argv[1]).read_text("utf-8")))
    Path(__file__).with_name("description.json").write_text(json.dumps(described, separators=(",", ":")) + "\n")
