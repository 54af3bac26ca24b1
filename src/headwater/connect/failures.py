"""Why a provider, or a sign-in, did not give what was asked: a closed list (spec/004, errors)."""

from typing import Literal

from headwater import limits
from headwater.integration_codes import INTEGRATION_CODES

FailureCode = Literal[
    "invalid_fields",
    "auth_state_invalid",
    "auth_state_expired",
    "auth_state_used",
    "auth_throttled",
    "challenge_failed",
    "credential_invalid",
    "insufficient_scope",
    "account_mismatch",
    "provider_rate_limited",
    "provider_unavailable",
    "provider_timeout",
    "provider_protocol_error",
    "exchange_unknown",
]

TRANSIENT = frozenset(code for code, row in INTEGRATION_CODES.items() if row.passes and code.startswith("provider_"))
"""What a provider may answer otherwise a moment later: asking again does no harm."""


class AuthFailure(Exception):
    """A sign-in, a probe or a refresh that failed. It carries nothing that a provider or a person said.

    `exchange_unknown` says that the provider may have acted and its answer is lost: it is never repeated.
    `fields` are the safe sentences of `invalid_fields`, by field. `retry_after` is in whole seconds, at most a day of
    them whatever was asked for (INT-286). `revoked` says of an invalid credential that the provider called it that.
    """

    def __init__(
        self,
        code: FailureCode,
        *,
        retry_after: int | None = None,
        fields: dict[str, str] | None = None,
        revoked: bool = False,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.retry_after = None if retry_after is None else min(retry_after, limits.RETRY_AFTER_SECONDS)
        self.fields = fields or {}
        self.revoked = revoked

    @property
    def is_transient(self) -> bool:
        """Whether the same question may be asked again later."""
        return self.code in TRANSIENT
