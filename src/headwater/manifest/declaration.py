"""The declaration: what a manifest or a source declaration says, as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Final, Literal

from headwater.manifest.schemas import top_level_fields

Semantics = Literal["append_only", "mutable_state"]
InteractionKind = Literal["credentials", "otp", "manual_action"]

# The profile's own registry of bindings. Any other name must be namespaced, as `example.com/gpu` (CP-011).
STANDARD_BINDINGS: Final = frozenset(
    {"browser_automation", "browser_profile", "filesystem", "network", "interactive", "loopback_listen"}
)


class Shape(Enum):
    """What kind of document a declaration was read from."""

    PLAIN = "connector manifest"
    CONSENT = "connector manifest with a consent surface"
    SOURCE = "source declaration"


@dataclass(frozen=True)
class Binding:
    """Something a connector asks of its host, such as `network`."""

    name: str
    required: bool
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """A named set of a stream's fields that its publisher suggests."""

    id: str
    label: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Relationship:
    """A foreign key: `foreign_key` is a field of the related `stream`."""

    name: str
    stream: str
    foreign_key: str
    cardinality: Literal["has_many", "has_one"]


@dataclass(frozen=True)
class Selected:
    """A stream as a preset selects it: whole, as a view, or by fields."""

    stream: str
    view: str | None = None
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Preset:
    """A named selection over several streams."""

    id: str
    label: str
    streams: tuple[Selected, ...]


@dataclass(frozen=True)
class Stream:
    """One declared stream.

    `primary_key` is empty where the manifest names none (a manifest of the first revision): the key that the
    connector sends is then the record's identity. `schema` is None where none is declared.

    `label` and `detail` are for the person who consents. `range_filters` maps a field to its operators,
    `searchable` names the text fields that full-text search covers.
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
    label: str = ""
    detail: str = ""
    fields_selectable: bool = False
    resources_selectable: bool = False
    views: tuple[View, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    range_filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    searchable: tuple[str, ...] = ()

    @cached_property
    def fields(self) -> frozenset[str]:
        """The top-level fields that the schema names."""
        return top_level_fields(self.schema or {})

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

    @property
    def title(self) -> str:
        """What a person who consents is shown: the label, else the description, else the name (CORE-126)."""
        return self.label or self.description or self.name


@dataclass(frozen=True)
class Declaration:
    """What a connector declares. `connector_id` is opaque: two spellings are two connectors (CP-906).

    For a source declaration it is `source.id`, and `version` is the opaque `declaration_version`.
    `extensions` are the profiles that a source declaration names beyond Core, unread.
    """

    connector_id: str
    version: str
    display_name: str
    streams: Mapping[str, Stream]
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    human_interaction: frozenset[str] = frozenset()
    shape: Shape = Shape.PLAIN
    source_kind: Literal["connector", "provider_native"] = "connector"
    publisher: str | None = None
    presets: tuple[Preset, ...] = ()
    extensions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def required_bindings(self) -> frozenset[str]:
        """The bindings without which no process is started (CP-050)."""
        return frozenset(name for name, binding in self.bindings.items() if binding.required)

    @property
    def short_name(self) -> str:
        """The last part of the connector id, fit for `<connector>/<instance>`."""
        tail = self.connector_id.rstrip("/").rpartition("/")[2]
        return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in tail)[:64] or "connector"
