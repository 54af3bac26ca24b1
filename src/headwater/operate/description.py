"""The description of an instance's operations: made from its definition alone, so that nothing is started for it.

Its revision moves with every change of the definition, and with the engine that reads it. The schema of an operation is
identified by what it belongs to as well: the instance, the revision and the operation.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from headwater.manifest.definition import Definition, Operation
from headwater.manifest.document import digest
from headwater.operate.schemas import Schema, input_schema, output_schema

ENGINE: Final = "operations/1"
"""How a definition is turned into requests and results: it moves when that is done in another way."""


class Described(Struct, frozen=True, dict=True):
    """An operation of an instance, as it is described."""

    operation: Operation
    instance_id: str
    revision: str

    @cached_property
    def input_schema(self) -> Schema:
        """What it takes."""
        return input_schema(self.operation)

    @cached_property
    def output_schema(self) -> Schema:
        """What it answers."""
        return output_schema(self.operation)

    @cached_property
    def schema(self) -> str:
        """What identifies both, for this instance at this revision."""
        return digest(
            {
                "instance": self.instance_id,
                "revision": self.revision,
                "operation": self.operation.id,
                "input": self.input_schema,
                "output": self.output_schema,
            }
        )


class Description(Struct, frozen=True, dict=True):
    """What an instance can be asked. `allowed` are the operations that its configuration permits."""

    connector: str
    instance_id: str
    definition: Definition
    allowed: frozenset[str]

    @cached_property
    def revision(self) -> str:
        """What identifies the description."""
        return digest({"engine": ENGINE, "connector": self.connector, "definition": self.definition.root})

    @cached_property
    def operations(self) -> Mapping[str, Described]:
        """Every operation that is exposed, permitted or not."""
        return {
            name: Described(operation, self.instance_id, self.revision)
            for name, operation in self.definition.operations.items()
        }

    def permitted(self, family: str | None = None) -> list[Described]:
        """Return the operations that the configuration permits, by their names; only those of a family, where given."""
        found = [self.operations[name] for name in sorted(self.operations.keys() & self.allowed)]
        return found if family is None else [one for one in found if one.operation.contract == family]


def allowed_by(definition: Definition, named: Sequence[str] | None) -> frozenset[str]:
    """Return what a configuration permits: the operations that it names, or every read where it names none at all."""
    if named is None:
        return frozenset(name for name, one in definition.operations.items() if one.effect == "read")
    return frozenset(named)
