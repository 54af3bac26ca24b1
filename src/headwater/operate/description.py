"""The description of an instance's operations, made from a definition alone or from what an integration's code said.

Its revision moves with every change of either, and with the engine that reads it. The schema of an operation is
identified by what it belongs to as well: the instance, the revision and the operation.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import Struct

from headwater.manifest.definition import Definition
from headwater.manifest.document import digest
from headwater.manifest.hello import Hello
from headwater.manifest.operation import Operation
from headwater.operate.schemas import Schema, input_schema, output_schema, walked

ENGINE: Final = "operations/1"
"""How a definition is turned into requests and results: it moves when that is done in another way."""
CODE_ENGINE: Final = "code/1"
"""The same of what an integration's code says."""

Source = Literal["configuration", "cached"]


class Described(Struct, frozen=True, dict=True):
    """An operation of an instance, as it is described, with what it takes and answers."""

    operation: Operation
    instance_id: str
    revision: str
    input_schema: Schema
    output_schema: Schema

    @cached_property
    def schema(self) -> str:
        """What identifies both schemas, for this instance at this revision."""
        return digest(
            {
                "instance": self.instance_id,
                "revision": self.revision,
                "operation": self.operation.id,
                "input": self.input_schema,
                "output": self.output_schema,
            }
        )


class Description(Struct, frozen=True):
    """What an instance can be asked. `allowed` are the operations that its configuration permits.

    `operations` are all that are exposed, permitted or not. What comes from a cache may no longer be so.
    """

    connector: str
    instance_id: str
    revision: str
    operations: Mapping[str, Described]
    allowed: frozenset[str]
    source: Source

    @property
    def labels(self) -> dict[str, Any]:
        """Where it is from, as every answer tells (CLI-260)."""
        return {"source": self.source, "stale": self.source == "cached"}

    def permitted(self, family: str | None = None) -> list[Described]:
        """Return the operations that the configuration permits, by their names; only those of a family, where given."""
        found = [self.operations[name] for name in sorted(self.operations.keys() & self.allowed)]
        return found if family is None else [one for one in found if one.operation.contract == family]


def from_definition(
    connector: str, instance_id: str, definition: Definition, named: Sequence[str] | None
) -> Description:
    """Describe an instance by its definition; `named` are the operations that its configuration permits."""
    revision = digest({"engine": ENGINE, "connector": connector, "definition": definition.root})
    operations = {
        name: Described(one, instance_id, revision, input_schema(one), output_schema(one))
        for name, one in definition.operations.items()
    }
    return Description(connector, instance_id, revision, operations, allowed_by(operations, named), "configuration")


def from_code(connector: str, instance_id: str, hello: Hello, named: Sequence[str] | None) -> Description:
    """Describe an instance by what its code said once."""
    revision = code_revision(connector, hello)
    operations = {
        name: Described(one, instance_id, revision, walked(one, dict(one.input)), dict(one.output))
        for name, one in hello.operations.items()
    }
    return Description(connector, instance_id, revision, operations, allowed_by(operations, named), "cached")


def code_revision(connector: str, hello: Hello) -> str:
    """Return what identifies a description by code."""
    return digest({"engine": CODE_ENGINE, "connector": connector, "said": hello.said.get("operations")})


def allowed_by(operations: Mapping[str, Described], named: Sequence[str] | None) -> frozenset[str]:
    """Return what a configuration permits: the operations that it names, or every one where it names none at all.

    To be permitted is not to be approved: a write needs that besides, and a policy that names it (CLI-700).
    """
    return frozenset(operations if named is None else named)
