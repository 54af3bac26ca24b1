"""A connector folder's `connector.toml`: the command that runs it, and the options a person may set."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from headwater import limits
from headwater.manifest.faults import Fault, Reader, refusal
from headwater.manifest.schemas import check_schema, compile_schema

FORMAT = "headwater-connector/1"
_INTEGER = re.compile(r"-?[0-9]{1,4000}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MEMBERS = frozenset(
    {"format", "command", "options", "description", "environment", "variables", "compatibility", "messages"}
)

# The names of the ways of speaking that are not the profile's own, and that a connector may be run in.
COMPATIBILITY = ("pdpp-reference/1",)

# The messages that came after the first revision of the profile, and that this host reads.
NEWER_MESSAGES = ("DETAIL_COVERAGE", "DETAIL_GAP", "STREAM_EVIDENCE")


class Package(Struct, frozen=True):
    """How a connector is run.

    A first word `python` in `command` stands for the interpreter that Headwater itself runs on. `options` is
    a JSON Schema of the non-secret settings; a property of format `path` is made absolute when it is set.
    `environment` names further variables of the caller's that the child may see, `variables` maps variables to
    the options that fill them, and `compatibility` is one of `COMPATIBILITY`, or empty. `messages` names the newer
    messages that the connector cannot do without: a host that does not read one refuses the connector (CP-109).
    """

    command: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    environment: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    compatibility: str = ""
    messages: tuple[str, ...] = ()

    def filled_variables(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables that a set of options fills: text as it is, anything else as JSON."""
        filled = {name: options[option] for name, option in self.variables.items() if option in options}
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in filled.items()}

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
    package, faults = examine_package(document)
    if faults:
        raise refusal("invalid_manifest", "connector.toml is refused; nothing was started.", faults)
    return package


def examine_package(document: bytes) -> tuple[Package, list[Fault]]:
    """Read a `connector.toml`; return the package, which holds where there is no fault, and the faults."""
    reader = Reader()
    return _package(reader, document), reader.faults


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
    reader.no_others(root, _MEMBERS)
    command = reader.names(root, "command")
    if not command:
        with reader.at("command"):
            reader.fault("required", "must be an array with at least one word")
    options = reader.table(root, "options")
    with reader.at("options"):
        check_schema(reader, options)
    variables = reader.table(root, "variables")
    _check_variables(reader, variables, options)
    if root.get("compatibility", "") not in ("", *COMPATIBILITY):
        with reader.at("compatibility"):
            reader.fault("enum", f"must be {' or '.join(COMPATIBILITY)}")
    messages = reader.names(root, "messages") or ()
    _check_messages(reader, messages)
    return Package(
        command=command or (),
        options=options,
        description=reader.text(root, "description") or "",
        environment=reader.names(root, "environment") or (),
        variables=variables,
        compatibility=str(root.get("compatibility", "")),
        messages=messages,
    )


def _check_messages(reader: Reader, messages: Sequence[str]) -> None:
    for index, name in enumerate(messages):
        if name not in NEWER_MESSAGES:
            with reader.at("messages", index):
                reader.fault("unknown_message", "is a message that this Headwater does not read; a newer one may")


def _check_variables(reader: Reader, variables: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    properties = options.get("properties", {})
    for name, option in variables.items():
        with reader.at("variables", name):
            if not _VARIABLE.fullmatch(name):
                reader.fault("variable", "is not the name of an environment variable")
            if not isinstance(option, str) or not isinstance(properties, Mapping) or option not in properties:
                reader.fault("unknown_option", "does not name an option of this connector")
