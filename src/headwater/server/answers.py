"""What goes back: JSON, and refusals in one shape, `{"error":{type, code, message, param, request_id}}`."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headwater.errors import HeadwaterError

_STATUSES: Final = {"invalid_input": 400, "not_found": 404, "run_active": 409}
_CODES: Final = {"invalid_input": "invalid_request"}
_TYPES: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}


class Refusal(Exception):
    """A request that is refused before the host is asked."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = headers
        super().__init__(message)

    def answer(self, request_id: str) -> Response:
        """Return the response that says so."""
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "api_error")
        error: dict[str, Any] = {"type": kind, "code": self.code, "message": self.message}
        if self.param is not None:
            error["param"] = self.param
        return json_answer({"error": {**error, "request_id": request_id}}, self.status, self.headers)


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a response."""
    return Response(msgspec.json.encode(value), status, headers, "application/json")


async def refused(request: Request, error: Exception) -> Response:
    """Answer for anything that was raised; of what nobody foresaw, nothing is told."""
    return _refusal(error).answer(request.state.request_id)


def _refusal(error: Exception) -> Refusal:
    match error:
        case Refusal():
            return error
        case HeadwaterError(code=code, message=message, data=data):
            return Refusal(_STATUSES.get(code, 503), _CODES.get(code, code), message, data.get("param"))
        case HTTPException(status_code=status, headers=headers):
            status = HTTPStatus(status)
            return Refusal(status, status.phrase.lower().replace(" ", "_"), f"{status.phrase}.", headers=headers)
    return Refusal(500, "internal_error", "Something went wrong inside Headwater. What was stored is whole.")
