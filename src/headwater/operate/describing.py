"""How an instance's operations are shown: a page of them, or one with its schemas."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from headwater.errors import refuse
from headwater.manifest.document import digest
from headwater.operate.description import Described, Description

Shown = dict[str, Any]


def told_page(names: Shown, description: Description, family: str | None, limit: int, cursor: str | None) -> Shown:
    """Return a page of the operations that are permitted, under the names of the instance."""
    found = description.permitted(family)
    bound = digest([description.instance_id, description.revision, family, [one.operation.id for one in found]])
    start = 0 if cursor is None else _after(cursor, bound)
    page = {
        **names,
        "revision": description.revision,
        "operations": [_line(one) for one in found[start : start + limit]],
        **description.labels,
    }
    if start + limit < len(found):
        page["next_cursor"] = urlsafe_b64encode(json.dumps([start + limit, bound]).encode()).decode()
    return page


def told_of(names: Shown, description: Description, described: Described) -> Shown:
    """Return an operation with its schemas, as JSON objects (CLI-271)."""
    schemas = {"input_schema": described.input_schema, "output_schema": described.output_schema}
    told = {"revision": described.revision, "schema": described.schema}
    return {**names, **told, "operation": {**_line(described), **schemas}, **description.labels}


def descriptor_of(description: Description, adapter: str, version: str, options: Mapping[str, Any]) -> Shown:
    """Return all of a description: `adapter` is the implementation, whose options are told as JSON text (CLI-041)."""
    operations = [
        {**_line(one), "schema": one.schema, "input_schema": one.input_schema, "output_schema": one.output_schema}
        for one in description.permitted()
    ]
    return {
        "version": version,
        "adapter": adapter,
        "instance": description.instance_id,
        "revision": description.revision,
        "operations": operations,
        "configuration_schema": json.dumps(options),
    }


def _line(described: Described) -> Shown:
    operation = described.operation
    line: Shown = {"id": operation.id, "description": operation.description, "effect": operation.effect}
    further = {"contract": operation.contract, "profiles": list(operation.profiles)}
    return line | {name: value for name, value in further.items() if value}


def _after(cursor: str, bound: str) -> int:
    """Return where a page begins; `stale_cursor` for one of another filter or revision (CLI-276)."""
    try:
        start, to = json.loads(urlsafe_b64decode(cursor.encode()))
        if to == bound and type(start) is int and start > 0:
            return start
    except (ValueError, TypeError, RecursionError):
        pass
    raise refuse("stale_cursor")
