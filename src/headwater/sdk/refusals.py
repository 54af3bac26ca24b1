"""How a hook says that it could not do what it was asked: a code of a closed list, and nothing that was said to it."""

from typing import Literal

RefusalCode = Literal[
    "invalid_fields",
    "challenge_failed",
    "credential_invalid",
    "insufficient_scope",
    "provider_rate_limited",
    "provider_unavailable",
    "provider_timeout",
    "provider_protocol_error",
    "exchange_unknown",
]


class Refused(Exception):
    """`retry_after` is in whole seconds, `fields` holds a safe sentence for each field that does not fit."""

    def __init__(
        self, code: RefusalCode, *, retry_after: int | None = None, fields: dict[str, str] | None = None
    ) -> None:
        super().__init__(code)
        self.code = code
        self.retry_after = retry_after
        self.fields = fields or {}
