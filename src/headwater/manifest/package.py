"""A connector folder's `connector.toml`: the command that runs it, and the options a person may set."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater import limits
from headwater.manifest.faults import Fault, Reader, refusal
from headwater.manifest.schemas import compile_schema, schema_faults

FORMAT = "headwater-connector/1"
_INTEGER = re.compile(r"-?[0-9]{1,4000}")
_MEMBERS = frozenset({"format", "command", "options", "description", "environment"})


@dataclass(frozen=True)
class Package:
    """How a connector is run.

    A first word `python` in `command` stands for the interpreter that Headwater itself runs on. `options` is
    a JSON Schema of the non-secret settings; a property of format `path` is made absolute when it is set.
    `environment` names further variables of the caller's that the child may see.
    """

    command: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    environment: tuple[str, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """The options that name a file or folder."""
        return frozenset(name for name, rule in self._rules.items() if rule.get("format") == "path")

    def option_faults(self, options: Mapping[str, Any]) -> list[Fault]:
        """Return what is wrong with a set of options, by place and rule."""
        validator = compile_schema({"type": "object", "additionalProperties": False, **self.options})
        return [
            Fault("".join(f"/{part}" for part in error.instance_path), str(error.schema_path[-1]), _plainly(error))
            for error in validator.iter_errors(dict(options))
            if str(error.schema_path[-1]) != "required"
        ] + [
            Fault(f"/{name}", "required", f"the option `{name}` is missing: --set {name}=VALUE")
            for name in self.options.get("required", [])
            if name not in options
        ]

    def typed(self, name: str, value: str) -> Any:
        """Read an option's text as the type that its schema gives it; leave it as text where it does not fit."""
        match self._rules.get(name, {}).get("type"):
            case "integer" if _INTEGER.fullmatch(value):
                return int(value)
            case "boolean" if value in ("true", "false"):
                return value == "true"
            case "array":
                return value.split(",")
        return value

    @property
    def _rules(self) -> Mapping[str, Mapping[str, Any]]:
        """The options whose schema is an object; `true` is a schema too, and says nothing."""
        properties = self.options.get("properties", {})
        return {name: rule for name, rule in properties.items() if isinstance(rule, Mapping)}


def _plainly(error: Any) -> str:
    rule = str(error.schema_path[-1])
    known = {"additionalProperties": "the connector has no such option"}
    return known.get(rule, f"breaks the rule `{rule}`")


def read_package(document: bytes) -> Package:
    """Read a `connector.toml`, or raise `invalid_manifest` with every fault."""
    reader = Reader()
    package = _package(reader, document)
    if reader.faults:
        raise refusal("invalid_manifest", "connector.toml is refused; nothing was started.", reader.faults)
    return package


def _package(reader: Reader, document: bytes) -> Package:
    if len(document) > limits.DOCUMENT_BYTES:
        reader.fault("size", f"is larger than {limits.DOCUMENT_BYTES} bytes")
        return Package(())
    try:
        root = tomllib.loads(document.decode("utf-8"))
    except (ValueError, RecursionError):
        reader.fault("toml", "is not valid TOML")
        return Package(())
    if root.get("format") != FORMAT:
        reader.fault("format", f'needs format = "{FORMAT}"')
    for name in sorted(root.keys() - _MEMBERS):
        with reader.at(name):
            reader.fault("unknown_member", "is not a member of this format")
    command = reader.names(root, "command")
    if not command:
        with reader.at("command"):
            reader.fault("required", "must be an array with at least one word")
    options = reader.table(root, "options")
    with reader.at("options"):
        for message in schema_faults(options):
            reader.fault("schema", message)
    return Package(
        command=command or (),
        options=options,
        description=reader.text(root, "description") or "",
        environment=reader.names(root, "environment") or (),
    )
