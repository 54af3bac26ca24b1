"""One failure, two faces: what the command line and the server tell of it is the same object."""

import asyncio
import json
from typing import get_args

import pytest
from starlette.requests import Request

from headwater.cli.output import Output
from headwater.codes import CODES
from headwater.connect.failures import AuthFailure, FailureCode
from headwater.connect.refusals import refusal_of
from headwater.errors import HeadwaterError, refuse
from headwater.integration_codes import INTEGRATION_CODES
from headwater.server.answers import refused
from headwater.server.statuses import STATUSES, status_of

SHARED = ("code", "message", "retryable", "next_action", "retry_after", "integration_code")
FAILURES = get_args(FailureCode)


def over_http(error: Exception) -> tuple[int, dict]:
    scope = {"type": "http", "headers": [], "state": {"request_id": "req_1"}}
    answer = asyncio.run(refused(Request(scope), error))
    return answer.status_code, json.loads(answer.body)["error"]


def on_stderr(capfd, error: HeadwaterError) -> tuple[int, dict]:
    status = Output("json").failure(error)
    told = capfd.readouterr()
    assert told.out == ""
    return status, json.loads(told.err)["error"]["data"]


@pytest.mark.clause("INT-280", "INT-285")
@pytest.mark.parametrize("code", sorted(CODES))
def test_each_code_is_told_alike_by_both_faces(capfd, code):
    """With all that a failure has to have, a status and an exit that suit it, and an id on each side."""
    error = refuse(code)
    status, shown = over_http(error)
    exit_status, typed = on_stderr(capfd, error)
    assert {name: shown.get(name) for name in SHARED} == {name: typed.get(name) for name in SHARED}
    assert (shown["code"], shown["message"], exit_status) == (code, CODES[code].message, error.exit_status)
    assert shown["retryable"] is CODES[code].passes
    assert 400 <= status < 600
    assert shown["request_id"] == "req_1"
    assert typed["request_id"].startswith("req_")


@pytest.mark.clause("INT-280", "INT-285")
@pytest.mark.parametrize("code", sorted(FAILURES))
def test_a_failure_of_an_integration_has_the_status_of_its_row(capfd, code):
    """Its own code stands beside the one that both faces share, with how long to wait."""
    error = refusal_of(AuthFailure(code, retry_after=7), "acquisition")
    row = INTEGRATION_CODES["outcome_unknown" if code == "exchange_unknown" else code]
    for failure in (error, AuthFailure(code, retry_after=7)):  # raised by a verb, or by a step of a sign-in
        status, shown = over_http(failure)
        _, typed = on_stderr(capfd, error)
        assert {name: shown.get(name) for name in SHARED} == {name: typed.get(name) for name in SHARED}
        assert (status, shown["retryable"], shown["retry_after"]) == (row.status, row.passes, 7)
        assert INTEGRATION_CODES[shown["integration_code"]] == row


def test_every_code_has_a_status():
    """None but those of the tables; what nobody thought of would be the machine's fault."""
    assert STATUSES.keys() == CODES.keys()
    assert {status_of(refuse(code)) for code in CODES} == {400, 403, 404, 409, 422, 429, 502, 503, 504}


def test_how_long_to_wait_is_in_the_header_too():
    scope = {"type": "http", "headers": [], "state": {"request_id": "req_1"}}
    answer = asyncio.run(refused(Request(scope), AuthFailure("auth_throttled", retry_after=60)))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
