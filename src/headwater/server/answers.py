"""What goes back: JSON, and refusals in one shape, `{"error":{type, code, message, retryable, next_action, …}}`.

Beside them stand the members that the failure has on the command line too, and the request's id (INT-285).
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headwater.connect.failures import AuthFailure
from headwater.connect.refusals import refusal_of
from headwater.errors import HeadwaterError
from headwater.server.statuses import status_of

_TYPES: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}


class Refusal(Exception):
    """A request that is refused. `told` holds further members of the failure, which hold nothing that was asked."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        param: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = headers
        self.told = told or {}
        super().__init__(message)

    def answer(self, request_id: str) -> Response:
        """Return the response that says so."""
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "api_error")
        error: dict[str, Any] = {"type": kind, "code": self.code, "message": self.message}
        error |= {"retryable": False, "next_action": "none", **self.told}
        if self.param is not None:
            error["param"] = self.param
        return json_answer({"error": {**error, "request_id": request_id}}, self.status, self.headers)


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a response."""
    return Response(msgspec.json.encode(value), status, headers, "application/json")


async def refused(request: Request, error: Exception) -> Response:
    """Answer for anything that was raised; of what nobody foresaw, nothing is told."""
    refusal = _refusal(error)
    request.state.code = refusal.code
    return refusal.answer(request.state.request_id)


def _refusal(error: Exception) -> Refusal:
    match error:
        case Refusal():
            return error
        case AuthFailure():
            return _of_failure(refusal_of(error, "acquisition"))
        case HeadwaterError():
            return _of_failure(error)
        case HTTPException(status_code=status, headers=headers):
            status = HTTPStatus(status)
            return Refusal(status, status.phrase.lower().replace(" ", "_"), f"{status.phrase}.", headers=headers)
    return Refusal(500, "internal_error", "Something went wrong inside Headwater. What was stored is whole.")


def _of_failure(error: HeadwaterError) -> Refusal:
    """Tell what the command line tells of a failure, but for what only a person at a terminal can do."""
    told = {"next_action": error.next_action, "retryable": error.is_retryable, **error.data}
    wait = error.data.get("retry_after", error.data.get("retry_after_seconds"))
    headers = None if wait is None else {"Retry-After": str(wait)}
    return Refusal(status_of(error), error.code, error.message, headers=headers, told=told)
