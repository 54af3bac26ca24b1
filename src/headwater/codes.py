"""The closed table of failures: every code, and the words that it may be told with.

The contract's codes stand in `CONTRACT`; what collecting and added connectors need beside them, in `OURS`.
A row gives the defaults of its code; a place that raises it may say another stage or next action of the
closed vocabularies. `members` is what the data of a refusal may hold beside `ALWAYS`: nothing else is told
(CLI-916, CLI-931).
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Kind = Literal["usage", "operational", "interrupted"]

Stage = Literal[
    "arguments",
    "configuration",
    "installed_provider",
    "protected_entry",
    "admission",
    "launch",
    "readiness",
    "custody",
    "observation",
    "publication",
    "dispatch",
    "stop",
]

NextAction = Literal[
    "none",
    "check_configuration",
    "choose_clock_source",
    "create_connection",
    "refresh_description",
    "repair_connection",
    "request_permission",
    "retry_explicitly",
    "retry_status",
    "revalidate_connection",
    "revoke_connection",
    "select_protected_source",
    "stop_owner",
    "unlock_keyring",
    "upgrade",
]


class Code(NamedTuple):
    """One row of the table of failures."""

    kind: Kind
    stage: Stage
    next_action: NextAction
    message: str
    members: str = ""
    """The names of the members that its data may hold, with spaces between."""
    passes: bool = False
    """Whether the same may be asked again later: nothing was changed, and nobody has to do anything meanwhile."""


# An opaque reference to what a failure belongs to says nothing of it.
ALWAYS: Final = frozenset({"acquisition", "connection", "request_id"})
# What the integration contract adds to any failure: a code of its closed list, a flag, whole seconds to wait (INT-285).
INTEGRATED: Final = frozenset({"integration_code", "retryable", "retry_after"})
# What became of a write is told with whatever it failed by (CLI-712).
WRITTEN: Final = frozenset({"mutation", "source_audit"})

_REVISION: Final = "field revision_expected read_with"
_SERVICE: Final = "service_code service_reason retry_after_seconds cause attempts"
_CONFIGURATION: Final = (
    "configuration_rule configuration_format instance_id configuration_bytes configuration_limit explanation"
)
_CLOCK: Final = "clock_refusal clock_sources"
_INSTALLED: Final = "installed_provider_path installed_provider_failure"
_RUN: Final = "run_id instance status streams checkpoints connector_error gaps_retried runs retried explanation"

CONTRACT: Final[Mapping[str, Code]] = {
    "invalid_input": Code(
        "usage", "arguments", "none", "An argument or document does not fit.", f"{_REVISION} revision_given param"
    ),
    "invalid_configuration": Code(
        "usage", "configuration", "check_configuration", "The configuration cannot be used.", _CONFIGURATION
    ),
    "configuration_exists": Code("operational", "configuration", "none", "There is a configuration already."),
    "protected_entry_unavailable": Code(
        "usage", "protected_entry", "select_protected_source", "There is no safe way to enter the credential."
    ),
    "confirmation_required": Code("usage", "arguments", "retry_explicitly", "This has to be confirmed."),
    "custody_unavailable": Code(
        "operational", "custody", "unlock_keyring", "The place of the credentials cannot be used."
    ),
    "custody_read_only": Code(
        "operational", "custody", "check_configuration", "The place of the credentials can only be read."
    ),
    "metadata_unavailable": Code("operational", "observation", "retry_status", "The database cannot be used."),
    "metadata_schema_newer": Code(
        "operational", "admission", "upgrade", "A newer Headwater wrote this database.", "store_version binary_version"
    ),
    "revision_conflict": Code(
        "operational", "publication", "retry_explicitly", "It was changed meanwhile; nothing was written."
    ),
    "outcome_unknown": Code("operational", "publication", "retry_status", "It is not known what came of it."),
    "identity_mismatch": Code(
        "operational", "admission", "revoke_connection", "That is another account than the connection's."
    ),
    "lifecycle_conflict": Code(
        "operational", "admission", "retry_status", "It is not in the state for this.", _REVISION
    ),
    "incarnation_mismatch": Code("operational", "stop", "retry_status", "The process named is not the one running."),
    "readiness_mismatch": Code(
        "operational", "readiness", "check_configuration", "What was started is not what the configuration names."
    ),
    "owner_build_mismatch": Code(
        "operational", "readiness", "stop_owner", "Another build of Headwater runs for this state directory."
    ),
    "description_unavailable": Code(
        "operational", "observation", "create_connection", "There is no description of its operations yet."
    ),
    "stale_description": Code(
        "operational", "observation", "refresh_description", "The description of its operations has changed."
    ),
    "not_found": Code("operational", "admission", "check_configuration", "There is no such thing here.", "param"),
    "instance_ambiguous": Code("usage", "arguments", "none", "The connector has several instances.", "instances"),
    "connection_unresolved": Code(
        "operational", "admission", "none", "It is not clear which connection is meant.", "connections"
    ),
    "approval_required": Code("operational", "admission", "none", "This has to be approved first.", "approval_steps"),
    "approval_refused": Code("operational", "admission", "none", "The approval does not fit."),
    "approval_replayed": Code("operational", "admission", "retry_status", "The approval was used before."),
    "idempotency_conflict": Code("operational", "admission", "none", "The key was used for something else."),
    "stale_cursor": Code(
        "operational", "observation", "retry_explicitly", "The cursor is of another list, or too old."
    ),
    "revoked": Code("operational", "admission", "create_connection", "The connection was revoked."),
    "forbidden": Code("operational", "admission", "request_permission", "This is not permitted.", "service_reason"),
    "not_granted": Code(
        "operational",
        "admission",
        "repair_connection",
        "The connection does not permit this now.",
        "service_reason",
    ),
    "unavailable": Code(
        "operational",
        "admission",
        "retry_explicitly",
        "The service cannot be reached.",
        f"service_code retry_after_seconds cause attempts {_CLOCK} {_INSTALLED}",
        passes=True,
    ),
    "timeout": Code("operational", "admission", "retry_explicitly", "It did not answer in time.", "cause attempts"),
    "capacity": Code(
        "operational",
        "admission",
        "retry_explicitly",
        "There is too much at once.",
        "cause attempts",
        passes=True,
    ),
    "unsupported": Code("operational", "admission", "none", "This is not supported here.", "field"),
    "service_failure": Code("operational", "dispatch", "retry_explicitly", "The service refused it.", _SERVICE),
    "unknown_format_version": Code("operational", "admission", "upgrade", "A newer Headwater reads this format."),
    "unmet_feature": Code("operational", "admission", "upgrade", "The release needs a newer Headwater.", "feature"),
    "digest_mismatch": Code("operational", "admission", "none", "A file of the release is not the one named.", "file"),
    "release_invalid": Code("operational", "admission", "none", "The release is not what its format says."),
    "interrupted": Code("interrupted", "admission", "retry_status", "Interrupted.", f"cause {_RUN}"),
}

# What the contract has no code for, because it knows no connectors that collect: manifests, scopes, runs, and
# connectors that are added and changed by the person. The kinds, stages and next actions are the contract's.
OURS: Final[Mapping[str, Code]] = {
    "invalid_manifest": Code(
        "usage",
        "admission",
        "check_configuration",
        "The manifest is refused; nothing was started.",
        "faults explanation",
    ),
    "invalid_scope": Code("usage", "admission", "none", "The scope is refused; nothing was started.", "faults"),
    "invalid_options": Code(
        "usage", "admission", "check_configuration", "The connector's options do not fit.", "faults"
    ),
    "invalid_schedule": Code("usage", "admission", "none", "The schedule does not fit."),
    "binding_unavailable": Code(
        "operational",
        "admission",
        "check_configuration",
        "The connector needs something this host does not offer.",
        "bindings",
    ),
    "connector_unavailable": Code(
        "operational", "launch", "check_configuration", "The connector's program could not be started."
    ),
    "connector_changed": Code(
        "operational",
        "admission",
        "check_configuration",
        "The connector's files are not those that were added.",
        "changes",
    ),
    "consent_needed": Code("operational", "admission", "none", "The connector asks for more than before.", "asks"),
    "install_failed": Code(
        "operational",
        "admission",
        "retry_explicitly",
        "The connector's packages could not be installed.",
        "explanation",
    ),
    "run_failed": Code("operational", "observation", "retry_explicitly", "The run failed.", f"cause {_RUN}"),
    "run_active": Code(
        "operational", "admission", "retry_status", "Another run of this instance is active.", "run_id", passes=True
    ),
    "run_superseded": Code("operational", "admission", "none", "The run cannot be undone any more.", "runs"),
    "address_in_use": Code("operational", "launch", "check_configuration", "The port cannot be listened on."),
    "already_exists": Code("operational", "admission", "none", "That already exists; it was left as it is."),
    "not_conforming": Code(
        "operational",
        "observation",
        "none",
        "The connector does not conform yet.",
        "conforms seed runs left_out clauses explanation",
    ),
    "storage_failed": Code("operational", "publication", "retry_explicitly", "The database could not be written."),
    "machine_exhausted": Code(
        "operational",
        "launch",
        "retry_status",
        "The machine has no files, processes or memory left for this.",
        passes=True,
    ),
}

CODES: Final[Mapping[str, Code]] = {**CONTRACT, **OURS}
