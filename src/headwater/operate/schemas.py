"""What an operation takes and answers, as JSON Schema 2020-12: made from its definition, and shown as it is checked."""

from collections.abc import Mapping
from typing import Any, Final

from headwater import limits
from headwater.manifest.definition import DefinedOperation
from headwater.manifest.operation import Operation
from headwater.manifest.parameters import BODY, Parameter
from headwater.manifest.walk import walk_document

Schema = dict[str, Any]
WALK: Final = "x-connectors-walk"
"""The member of an input schema that says how an operation's pages follow one another (CLI-651)."""

_SCALARS: Final = ["string", "number", "boolean"]

# A number may come as text too: not every caller can write one of more than 53 bits.
_AS_TEXT: Final[Mapping[str, str]] = {"integer": "^-?(0|[1-9][0-9]*)$", "number": "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$"}


def input_schema(operation: DefinedOperation) -> Schema:
    """Return what a caller gives: a member a parameter, what a guard compares, and `body` where one is sent.

    Nothing else is taken.
    """
    members: Schema = {param.name: _of(param) for param in operation.params}
    members |= {name: {"type": _SCALARS, "description": text} for name, text in operation.guard.inputs.items()}
    required = [*(param.name for param in operation.params if param.required), *operation.guard.inputs]
    if operation.body is not None:
        members[BODY] = dict(operation.body)
        required.append(BODY)
    schema = {"type": "object", "properties": members, "required": required, "additionalProperties": False}
    return walked(operation, schema)


def walked(operation: Operation, schema: Schema) -> Schema:
    """Return an operation's input schema with how its pages follow one another, where it has pages."""
    return schema if operation.walk is None else {**schema, WALK: walk_document(operation.walk)}


def output_schema(operation: DefinedOperation) -> Schema:
    """Return what is answered: the status, the body as the definition declares it, and where it is from."""
    body: Any = dict(operation.output) if operation.output is not None else True
    text = {name: {"type": "string"} for name in ("instance", "resource", "source_revision")}
    provenance = {**text, "observed_at_unix_ms": {"type": "integer"}}
    return {
        "type": "object",
        "properties": {
            "status": {"type": "integer"},
            "body": {"type": "string"} if operation.response == "text" else body,
            "provenance": {
                "type": "object",
                "properties": provenance,
                "required": list(provenance),
                "additionalProperties": False,
            },
        },
        "required": ["status", "body", "provenance"],
        "additionalProperties": False,
    }


def _of(param: Parameter) -> Schema:
    one = _single(param)
    if param.repeated:
        several = {"type": "array", "items": one, "minItems": 1, "maxItems": limits.PARAMETERS}
        one = {"anyOf": [several, one]}
    if param.description:
        one["description"] = param.description
    if param.default is not None:
        one["default"] = param.default
    return one


def _single(param: Parameter) -> Schema:
    if param.values:
        return {"enum": [*param.values, *(as_text(value) for value in param.values if not isinstance(value, str))]}
    if param.kind == "boolean":
        return {"enum": [True, False, "true", "false"]}
    if param.kind == "string":
        return {"type": "string", "minLength": 1} if param.place == "path" else {"type": "string"}
    bounds = {"minimum": param.minimum, "maximum": param.maximum}
    schema: Schema = {"type": [param.kind, "string"], "pattern": _AS_TEXT[param.kind]}
    return schema | {name: bound for name, bound in bounds.items() if bound is not None}


def as_text(value: object) -> str:
    """Return how a parameter's value is sent: JSON's own spelling of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if not isinstance(value, str | int | float) else str(value)
