"""What every shape says of a stream: its records, what may be selected of them, and what covers its cursor."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Final, cast, get_args

from headwater import limits
from headwater.manifest.declaration import Preset, Relationship, Selected, Semantics, Shape, Stream, View
from headwater.manifest.faults import Reader
from headwater.manifest.graph import Edges
from headwater.manifest.schemas import check_schema, top_level_fields

OPERATORS: Final = ("gte", "gt", "lte", "lt")
# A derived stream has a name of its own; its predicate does not stand in it (CORE-131).
_PREDICATE: Final = re.compile(r"[?=<>&]")
# What has a canonical string (CORE-019).
_KEY_TYPES: Final = frozenset({"string", "integer", "number"})


class StreamReader:
    """Reads one entry of `streams`."""

    def __init__(self, reader: Reader, row: dict[str, Any], shape: Shape) -> None:
        self._reader = reader
        self._row = row
        self._strict = shape is Shape.SOURCE
        self._shape = shape
        self._schema = self._read_schema()
        self._fields = frozenset() if self._schema is None else top_level_fields(self._schema)

    def stream(self) -> Stream:
        """Read what Core says of a stream. An entry at fault still gives a stream, for the checks that follow."""
        reader, row = self._reader, self._row
        display = reader.table(row, "display")
        selection = reader.table(row, "selection", required=self._strict)
        with reader.at("display"):
            label, detail = (reader.text(display, name) or "" for name in ("label", "detail"))
        with reader.at("selection"):
            selectable = [bool(reader.flag(selection, name, required=self._strict)) for name in ("fields", "resources")]
        return Stream(
            name=self._name(),
            semantics=self._semantics(),
            schema=self._schema,
            primary_key=self._primary_key(),
            cursor_field=self._field("cursor_field"),
            consent_time_field=self._field("consent_time_field"),
            description=reader.text(row, "description") or "",
            label=label,
            detail=detail,
            fields_selectable=selectable[0],
            resources_selectable=selectable[1],
            views=self._views(),
            relationships=self._relationships(),
            **self._query(),
        )

    def _name(self) -> str:
        name = self._reader.text(self._row, "name", required=True) or ""
        with self._reader.at("name"):
            if name == "*":
                self._reader.fault("wildcard", "may not be the wildcard")
            elif self._shape is not Shape.PLAIN and _PREDICATE.search(name):
                self._reader.fault("predicate", "may not hold a predicate")
        return name

    def _semantics(self) -> Semantics:
        required = self._shape is not Shape.PLAIN
        words = get_args(Semantics)
        return cast(Semantics, self._reader.choice(self._row, "semantics", words, required=required) or "mutable_state")

    def _read_schema(self) -> dict[str, Any] | None:
        if "schema" not in self._row and not self._strict:
            return None
        schema = self._reader.table(self._row, "schema", required=True)
        with self._reader.at("schema"):
            fit = check_schema(self._reader, schema)
        return schema if fit and isinstance(self._row.get("schema"), dict) else None

    def _primary_key(self) -> tuple[str, ...]:
        row = self._row
        if isinstance(row.get("primary_key"), str) and not self._strict:
            row = {"primary_key": [row["primary_key"]]}
        names = self._reader.names(row, "primary_key", required=self._strict)
        with self._reader.at("primary_key"):
            if names is not None and (not names or len(set(names)) < len(names)):
                self._reader.fault("primary_key", "must name at least one field, and none twice")
            for name in names or ():
                self._check(name)
                if not self._may_hold(name, _KEY_TYPES):
                    self._reader.fault("key_type", "names a field that is neither text nor a number")
        return names or ()

    def _field(self, member: str) -> str | None:
        name = self._reader.text(self._row, member)
        if name is not None:
            with self._reader.at(member):
                self._check(name)
        return name

    def _views(self) -> tuple[View, ...]:
        reader = self._reader
        views: dict[str, View] = {}
        for view in reader.rows(self._row, "views"):
            names = reader.names(view, "fields", required=True) or ()
            with reader.at("fields"):
                for name in names:
                    self._check(name)
            id_, label = (reader.text(view, member, required=True) or "" for member in ("id", "label"))
            read = View(id_, label, names)
            if views.setdefault(id_, read) is not read and id_:
                with reader.at("id"):
                    reader.fault("unique", "is the id of another view")
        return tuple(views.values())

    def _relationships(self) -> tuple[Relationship, ...]:
        reader = self._reader
        related = []
        for row in reader.rows(self._row, "relationships"):
            name, stream, key = (reader.text(row, m, required=True) or "" for m in ("name", "stream", "foreign_key"))
            kind = reader.choice(row, "cardinality", ("has_many", "has_one"), required=True)
            related.append(Relationship(name, stream, key, cast(Any, kind)))
        return tuple(related)

    def _query(self) -> dict[str, Any]:
        reader = self._reader
        query = reader.table(self._row, "query")
        with reader.at("query"):
            filters = reader.table(query, "range_filters")
            with reader.at("range_filters"):
                ranges = {name: self._operators(filters, name) for name in filters}
            search = reader.table(query, "search")
            with reader.at("search"):
                searchable = reader.names(search, "lexical_fields") or ()
                with reader.at("lexical_fields"):
                    if len(searchable) > limits.SEARCH_FIELDS:
                        reader.fault("size", f"has more than {limits.SEARCH_FIELDS} entries")
                    for name in searchable:
                        self._check(name)
                        if not self._may_hold(name, {"string"}):
                            reader.fault("search_type", "names a field that is no text")
        return {"range_filters": ranges, "searchable": tuple(dict.fromkeys(searchable))}

    def _check(self, name: str) -> None:
        """Note a name that the schema does not declare."""
        open_ = self._schema is None or (self._shape is Shape.PLAIN and not self._fields)
        if not open_ and name not in self._fields:
            self._reader.fault("unknown_field", "names a field that the schema does not have")

    def _may_hold(self, name: str, kinds: Set[str]) -> bool:
        """Whether a field's schema leaves it one of these types; one that names no type leaves it all."""
        field = (self._schema or {}).get("properties", {}).get(name)
        named = field.get("type", "string") if isinstance(field, Mapping) else "string"
        return not kinds.isdisjoint([named] if isinstance(named, str) else named)

    def _operators(self, filters: dict[str, Any], name: str) -> tuple[str, ...]:
        operators = self._reader.names(filters, name)
        with self._reader.at(name):
            self._check(name)
            if operators == ():
                self._reader.fault("empty", "names no operator")
            elif not set(OPERATORS).issuperset(operators or ()):
                self._reader.fault("enum", f"may name only {', '.join(OPERATORS)}")
        return operators or ()


def stream_rows(reader: Reader, root: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each entry of `streams`, at its place, with its index; the list is not empty and bounded."""
    rows = root.get("streams")
    if not isinstance(rows, list) or not rows:
        reader.fault("type", "must be a non-empty array")
        return
    if len(rows) > limits.STREAMS_PER_MANIFEST:
        reader.fault("size", f"has more than {limits.STREAMS_PER_MANIFEST} entries")
        return
    for index, row in enumerate(rows):
        with reader.at(index):
            if isinstance(row, dict):
                yield index, row
            else:
                reader.fault("type", "must be an object")


def dependencies(reader: Reader, row: dict[str, Any], name: str) -> Edges:
    """Read what covers a stream's cursor, as the Collection Profile has it."""
    parents = reader.names(row, "parent_streams")
    return Edges(
        stream=name,
        state_stream=reader.text(row, "state_stream"),
        parent_streams=parents or (),
        strategy=row.get("coverage_strategy"),
        both="state_stream" in row and "parent_streams" in row,
        empty=parents == (),
    )


def check_names(reader: Reader, rows: Iterable[tuple[int, Stream]]) -> dict[str, int]:
    """Note each name that is declared more than once; return the index at which a name stands first."""
    counts: Counter[str] = Counter()
    places: dict[str, int] = {}
    for index, stream in rows:
        counts[stream.name] += 1
        places.setdefault(stream.name, index)
    for name, count in counts.items():
        if count > 1 and name:
            with reader.at(places[name], "name"):
                reader.fault("unique", "is declared more than once")
    return places


def check_relationships(reader: Reader, rows: Iterable[tuple[int, Stream]], streams: Mapping[str, Stream]) -> None:
    """Note each relationship with a stream that is not declared, or by a field that neither side has."""
    for index, stream in rows:
        for number, related in enumerate(stream.relationships):
            other = streams.get(related.stream)
            with reader.at(index, "relationships", number):
                if other is None and related.stream:
                    with reader.at("stream"):
                        reader.fault("unknown_stream", "names a stream that is not declared")
                elif other is not None and not _has(stream, related.foreign_key) | _has(other, related.foreign_key):
                    with reader.at("foreign_key"):
                        reader.fault("unknown_field", "names a field that neither stream's schema has")


def _has(stream: Stream, name: str) -> bool:
    return not name or stream.schema is None or name in stream.fields


def presets(reader: Reader, root: dict[str, Any], member: str, streams: Mapping[str, Stream]) -> tuple[Preset, ...]:
    """Read the presets; one that lists a stream twice, or one that is not declared, is refused (CORE-120)."""
    found = []
    for row in reader.rows(root, member):
        id_, label = (reader.text(row, name, required=True) or "" for name in ("id", "label"))
        if not row.get("streams"):
            with reader.at("streams"):
                reader.fault("required", "must name at least one stream")
        seen: dict[str, Selected] = {}
        for entry in reader.rows(row, "streams"):
            selected = _selected(reader, entry, streams)
            if seen.setdefault(selected.stream, selected) is not selected:
                with reader.at("name"):
                    reader.fault("unique", "names a stream twice")
        found.append(Preset(id_, label, tuple(seen.values())))
    return tuple(found)


def _selected(reader: Reader, entry: dict[str, Any], streams: Mapping[str, Stream]) -> Selected:
    name = reader.text(entry, "name", required=True) or ""
    view, names = reader.text(entry, "view"), reader.names(entry, "fields")
    if name and name not in streams:
        with reader.at("name"):
            reader.fault("unknown_stream", "names a stream that is not declared")
    if view is not None and names is not None:
        with reader.at("fields"):
            reader.fault("both", "stands beside a view; a stream is selected by one of the two")
    if name in streams and not all(_has(streams[name], field) for field in names or ()):
        with reader.at("fields"):
            reader.fault("unknown_field", "names a field that the schema does not have")
    return Selected(name, view, names)
