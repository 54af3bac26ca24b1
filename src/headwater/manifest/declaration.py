"""The declaration: a connector manifest, as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

Semantics = Literal["append_only", "mutable_state"]
InteractionKind = Literal["credentials", "otp", "manual_action"]

# The profile's own registry of bindings. Any other name must be namespaced, as `example.com/gpu` (CP-011).
STANDARD_BINDINGS: Final = frozenset(
    {"browser_automation", "browser_profile", "filesystem", "network", "interactive", "loopback_listen"}
)


@dataclass(frozen=True)
class Binding:
    """Something a connector asks of its host, such as `network`."""

    name: str
    required: bool
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """One declared stream.

    `primary_key` is empty where the manifest names none (a first-revision manifest): the key that the
    connector sends is then the record's identity. `schema` is None where none is declared.
    """

    name: str
    semantics: Semantics = "mutable_state"
    schema: Mapping[str, Any] | None = None
    primary_key: tuple[str, ...] = ()
    cursor_field: str | None = None
    consent_time_field: str | None = None
    incremental: bool | None = None
    state_stream: str | None = None
    parent_streams: tuple[str, ...] = ()
    description: str = ""

    @cached_property
    def fields(self) -> frozenset[str]:
        """The top-level fields that the schema names."""
        return frozenset((self.schema or {}).get("properties", {}))

    @cached_property
    def essential_fields(self) -> frozenset[str]:
        """The fields that no narrowing may leave out: required, key and time fields (CP-310)."""
        required = (self.schema or {}).get("required", ())
        times = [name for name in (self.consent_time_field,) if name]
        return frozenset([*required, *self.primary_key, *times])

    @property
    def parents(self) -> tuple[str, ...]:
        """The checkpoint streams that cover this one; itself when it declares none (CP-018)."""
        if self.state_stream is not None:
            return (self.state_stream,)
        return self.parent_streams or (self.name,)


@dataclass(frozen=True)
class Declaration:
    """What a connector declares. `connector_id` is opaque: two spellings are two connectors (CP-906)."""

    connector_id: str
    version: str
    display_name: str
    streams: Mapping[str, Stream]
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    human_interaction: frozenset[str] = frozenset()

    @property
    def required_bindings(self) -> frozenset[str]:
        """The bindings without which no process is started (CP-050)."""
        return frozenset(name for name, binding in self.bindings.items() if binding.required)

    @property
    def short_name(self) -> str:
        """The last part of the connector id, fit for `<connector>/<instance>`."""
        tail = self.connector_id.rstrip("/").rpartition("/")[2]
        return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in tail)[:64] or "connector"
