"""What goes wrong between Headwater and a provider, in the vocabulary of the integration contract (INT-280..287).

An integration says its codes; a person and a program get the failure that stands beside each. The list is
closed: what an integration raises beside it is `provider_protocol_error` (INT-283, INT-284).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.codes import NextAction


class IntegrationCode(NamedTuple):
    """One row: the failure that a code becomes, what to do next, its HTTP status, and whether a repeat may help.

    `status` is for faces that speak HTTP, None where no request is answered with it. `passes` says that the same
    request may be sent again, later and only while nothing that it changes has left (INT-281).
    """

    code: str
    next_action: NextAction
    status: int | None
    passes: bool = False
    service_code: str | None = None


INTEGRATION_CODES: Final[Mapping[str, IntegrationCode]] = {
    "invalid_manifest": IntegrationCode("invalid_manifest", "check_configuration", None),
    "unknown_integration": IntegrationCode("not_found", "check_configuration", 404),
    "integration_disabled": IntegrationCode("forbidden", "check_configuration", 403),
    "capability_not_supported": IntegrationCode("unsupported", "none", 409),
    "action_unavailable": IntegrationCode("unsupported", "none", 409),
    "invalid_fields": IntegrationCode("invalid_input", "none", 422),
    "auth_state_invalid": IntegrationCode("invalid_input", "retry_explicitly", 400),
    "auth_state_expired": IntegrationCode("timeout", "retry_explicitly", 410),
    "auth_state_used": IntegrationCode("lifecycle_conflict", "retry_explicitly", 409),
    "challenge_failed": IntegrationCode("service_failure", "select_protected_source", 401, service_code="unauthorized"),
    "auth_throttled": IntegrationCode("capacity", "retry_explicitly", 429, passes=True),
    "credential_invalid": IntegrationCode("service_failure", "repair_connection", 401, service_code="unauthorized"),
    "insufficient_scope": IntegrationCode("forbidden", "request_permission", 403),
    "account_mismatch": IntegrationCode("identity_mismatch", "revoke_connection", 409),
    "provider_rate_limited": IntegrationCode(
        "service_failure", "retry_explicitly", 429, passes=True, service_code="rate_limited"
    ),
    "provider_unavailable": IntegrationCode("unavailable", "retry_explicitly", 503, passes=True),
    "provider_timeout": IntegrationCode("timeout", "retry_explicitly", 504, passes=True),
    "provider_protocol_error": IntegrationCode("service_failure", "upgrade", 502, service_code="upstream_protocol"),
    "sync_in_progress": IntegrationCode("run_active", "retry_status", 409, passes=True),
    "quote_expired": IntegrationCode("lifecycle_conflict", "retry_explicitly", 409),
    "price_changed": IntegrationCode("lifecycle_conflict", "retry_explicitly", 409),
    "sold_out": IntegrationCode("service_failure", "none", 409, service_code="conflict"),
    "outcome_unknown": IntegrationCode("outcome_unknown", "retry_status", 202),
    "reconciliation_required": IntegrationCode("lifecycle_conflict", "retry_status", 409),
    "idempotency_conflict": IntegrationCode("idempotency_conflict", "none", 409),
    "webhook_signature_invalid": IntegrationCode("forbidden", "none", 401),
}
