"""The HTTP status of each failure: total over the tables of codes, which a test holds."""

from collections.abc import Mapping
from typing import Final

from headwater.codes import CODES
from headwater.errors import HeadwaterError
from headwater.integration_codes import INTEGRATION_CODES

_OTHER: Final = 503  # this machine, its files or its configuration keep it from answering
_BY_STATUS: Final[Mapping[int, tuple[str, ...]]] = {
    400: ("invalid_input", "invalid_schedule", "instance_ambiguous", "stale_cursor", "confirmation_required"),
    403: ("forbidden", "not_granted", "approval_required", "approval_refused", "consent_needed"),
    404: ("not_found", "description_unavailable"),
    409: (
        *("already_exists", "approval_replayed", "binding_unavailable", "configuration_exists"),
        *("connection_unresolved", "connector_changed", "custody_read_only", "idempotency_conflict"),
        *("identity_mismatch", "incarnation_mismatch", "lifecycle_conflict", "protected_entry_unavailable"),
        *("revision_conflict", "revoked", "run_active", "run_superseded", "stale_description", "unsupported"),
    ),
    422: ("invalid_manifest", "invalid_options", "invalid_scope"),
    429: ("capacity",),
    502: ("outcome_unknown", "service_failure"),
    504: ("timeout",),
}
STATUSES: Final[Mapping[str, int]] = {
    **dict.fromkeys(CODES, _OTHER),
    **{code: status for status, codes in _BY_STATUS.items() for code in codes},
}


def status_of(error: HeadwaterError) -> int:
    """Return the status of a failure; one of an integration has that of its row (INT-280)."""
    row = INTEGRATION_CODES.get(error.data.get("integration_code", ""))
    return STATUSES[error.code] if row is None or row.status is None else row.status
