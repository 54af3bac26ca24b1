"""A source declaration and a connector manifest that say everything there is to say."""

FIELDS = {
    "id": {"type": "string"},
    "thread": {"type": "string"},
    "text": {"type": "string"},
    "at": {"type": "string", "format": "date-time"},
    "count": {"type": "integer"},
}
SCHEMA = {"type": "object", "properties": FIELDS, "required": ["id"]}
STREAM = {
    "name": "messages",
    "description": "What was said.",
    "display": {"label": "Your messages", "detail": "Texts and times."},
    "semantics": "mutable_state",
    "schema": SCHEMA,
    "primary_key": ["id"],
    "cursor_field": "at",
    "consent_time_field": "at",
    "selection": {"fields": True, "resources": False},
    "views": [{"id": "short", "label": "Times only", "fields": ["id", "at"]}],
    "relationships": [{"name": "thread", "stream": "threads", "foreign_key": "thread", "cardinality": "has_one"}],
    "query": {
        "range_filters": {"at": ["gte", "lt"], "count": ["gte", "gt", "lte", "lt"]},
        "search": {"lexical_fields": ["text"], "semantic_fields": ["text"]},
    },
}
THREADS = {
    "name": "threads",
    "semantics": "append_only",
    "schema": SCHEMA,
    "primary_key": ["id", "thread"],
    "selection": {"fields": False, "resources": True},
}
PRESET = {"id": "all", "label": "All", "streams": [{"name": "messages", "view": "short"}, {"name": "threads"}]}
COLLECTION = "https://pdpp.dev/profile/collection"
SOURCE = {
    "protocol_version": "0.1.0",
    "source": {"kind": "connector", "id": "https://x.example/connectors/chat"},
    "declaration_version": "2026-08-11",
    "publisher": {"id": "https://x.example/"},
    "display": {"name": "Chat"},
    "selection_presets": [PRESET],
    "streams": [STREAM, THREADS],
    "extensions": {"https://x.example/profile/odd": [None, {"instance_ids": 3}]},
}
RUN = {
    "runtime_requirements": {"bindings": {"network": {"required": True}, "x.example/gpu": {"required": False, "n": 2}}},
    "capabilities": {"human_interaction": ["otp"]},
}
MANIFEST = {
    "protocol_version": "0.1.0",
    "connector_id": "https://x.example/connectors/chat",
    "version": "2.0.0",
    "display_name": "Chat",
    **RUN,
    "selection_presets": [PRESET],
    "streams": [
        {**STREAM, "incremental": True},
        {**THREADS, "state_stream": "messages", "coverage_strategy": "checkpoint_window"},
    ],
}
