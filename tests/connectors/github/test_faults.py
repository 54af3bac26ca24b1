"""What the GitHub connector does when the provider limits, fails, breaks off, or says something strange."""

from typing import Any

import pytest
from connectors.github.account import CONNECTOR, Account, said

from headwater.sdk.testing import collect


def full(account: Account, pulls: int = 3) -> Any:
    """Make a repository with pull requests."""
    repository = account.world.add_repository("garden")
    for number in range(pulls):
        account.world.add_pull_request(repository, f"Number {number}")
    return repository


def reasons(run: Any, stream: str) -> list[str]:
    """Return why a stream was left out or broken off."""
    return [m["reason"] for m in said(run, "SKIP_RESULT") if m["stream"] == stream]


def test_a_limit_ends_the_run_in_order_and_the_next_goes_on(account: Account) -> None:
    """The details that were not asked for are gaps; what was not listed comes with the next run."""
    full(account, pulls=150)
    account.github.remaining = 60
    first = account.succeed(None, "issues", "pull_requests")
    assert reasons(first, "issues") == ["rate_limited"]
    (skip,) = said(first, "SKIP_RESULT")
    assert skip["recovery_hint"] == "retry_by_runtime"
    (coverage,) = said(first, "DETAIL_COVERAGE")
    assert len(coverage["required_keys"]) == 100
    assert len(coverage["hydrated_keys"]) == 58
    assert len(coverage["gap_keys"]) == len(said(first, "DETAIL_GAP")) == 42
    assert all(gap["retryable"] for gap in said(first, "DETAIL_GAP"))
    # One request met the limit, and nothing was asked behind it.
    assert len(account.github.paths(403)) == 1
    account.github.remaining = None
    second = account.succeed(first.state, "issues", "pull_requests")
    assert {record["number"] for record in second.records("issues")} >= set(range(101, 151))
    assert {record["id"] for record in second.records("pull_requests")} >= set(coverage["gap_keys"])
    assert said(second, "DETAIL_GAP") == []
    missed = [{"name": "pull_requests", "resources": coverage["gap_keys"]}]
    again = account.succeed(None, *missed)
    assert {record["id"] for record in again.records("pull_requests")} == set(coverage["gap_keys"])


def test_a_limit_that_is_soon_over_is_waited_for(account: Account) -> None:
    """Retry-After within a minute: the request is sent again."""
    full(account)
    account.github.faults["/pulls/2"] = [429]
    account.github.retry_after = 0
    run = account.succeed(None, "issues", "pull_requests")
    assert len(run.records("pull_requests")) == 3
    assert account.github.paths(429) == ["/repos/octocat/garden/pulls/2"]


@pytest.mark.parametrize(
    ("fault", "retryable"), [([404], False), ([451], False), ([502] * 3, True), ([403], False)], ids=str
)
def test_one_detail_that_cannot_be_had_is_a_gap(account: Account, fault: list[int], retryable: bool) -> None:
    """The others come, and the cursor moves."""
    repository = full(account)
    account.github.faults["/pulls/2"] = list(fault)
    run = account.succeed(None, "issues", "pull_requests")
    (gap,) = said(run, "DETAIL_GAP")
    assert gap["record_key"] == f"{repository.item['id']}/2"
    assert gap["retryable"] is retryable
    assert gap["last_error"] == {"status": fault[0]}
    assert len(run.records("pull_requests")) == 2
    assert "issues" in run.state


@pytest.mark.parametrize("fault", [404, 410, 451, 403])
def test_a_repository_that_cannot_be_read_costs_no_other(account: Account, fault: int) -> None:
    """It is said, and what is known of it stays."""
    first = full(account)
    other = account.world.add_repository("shed")
    account.world.add_issue(other, "Paint it")
    run = account.succeed(None, "issues")
    account.world.edit(first, 1, title="Changed")
    account.github.faults["/garden/issues"] = [fault]
    second = account.succeed(run.state, "issues")
    assert reasons(second, "issues") == ["repository_unreadable"]
    assert second.state == run.state
    third = account.succeed(second.state, "issues")
    assert "Changed" in {record["title"] for record in third.records("issues")}


@pytest.mark.parametrize("fault", ["drop", 500])
def test_a_passing_fault_is_tried_again(account: Account, fault: Any) -> None:
    """A connection that breaks off in a body is no answer, however much of it came."""
    full(account)
    account.github.faults["/garden/issues"] = [fault]
    run = account.succeed(None, "issues")
    assert len(run.records("issues")) == 3
    assert said(run, "SKIP_RESULT") == []


def test_a_provider_that_is_gone_in_the_midst_ends_the_run_in_order(account: Account) -> None:
    """What was saved stands."""
    full(account)
    account.github.faults["/garden/issues"] = ["drop"] * 9
    run = account.succeed(None, "user", "issues")
    assert reasons(run, "issues") == ["provider_unavailable"]
    assert "user" in run.state


def test_a_provider_that_is_not_there_fails_the_run(account: Account) -> None:
    """No empty success."""
    run = account.collect(None, endpoint="http://127.0.0.1:9")
    assert run.done["status"] == "failed"
    assert run.done["error"]["code"] == "provider_unavailable"
    assert run.done["error"]["retryable"] is True


def test_a_token_that_is_refused_asks_for_a_new_one(account: Account) -> None:
    """The hint says so, and no token is in what the connector writes."""
    full(account)
    token = "ghp_another-token"
    run = collect(CONNECTOR, options={"endpoint": account.github.url}, answers=[{"token": token}])
    assert run.done["error"]["code"] == "credential_invalid"
    assert run.done["error"]["recovery_hint"] == "refresh_credentials"
    assert run.done["error"]["retryable"] is False
    assert token not in run.stderr + str(run.messages)


@pytest.mark.parametrize("token", ["with space", "line\nbreak", "ümlaut"])
def test_a_token_that_cannot_be_one_is_never_sent(account: Account, token: str) -> None:
    """A header must not be split, nor its value be shown by an exception."""
    run = collect(CONNECTOR, options={"endpoint": account.github.url}, answers=[{"token": token}])
    assert run.done["error"]["code"] == "credential_invalid"
    assert account.github.asked == []
    assert token not in run.stderr


@pytest.mark.parametrize("endpoint", ["http://github.example.org", "ftp://x", "https://me:secret@x/", "https://x/?a=b"])
def test_an_endpoint_that_would_give_the_token_away_is_refused(account: Account, endpoint: str) -> None:
    """Before anything is asked."""
    run = account.collect(None, endpoint=endpoint)
    assert run.done["status"] == "failed"
    assert said(run, "INTERACTION") == []


def test_garbage_fails_the_run(account: Account) -> None:
    """What is no JSON says nothing of what is there."""
    full(account)
    account.github.faults["/user/repos"] = ["garbage"]
    run = account.collect(None, "repositories")
    assert run.done["error"]["code"] == "provider_protocol_error"


def test_another_server_gets_no_token(account: Account) -> None:
    """A redirect and a next page that lead elsewhere are not followed."""
    full(account, pulls=120)
    account.github.elsewhere = "http://localhost:9"
    for issue in next(iter(account.world.repositories.values())).issues.values():
        issue["updated_at"] = "2024-05-05T05:05:05Z"
    run = account.succeed(None, "issues")
    assert reasons(run, "issues") == ["provider_unavailable"]


def test_a_poisoned_issue_is_kept_aside(account: Account, headwater: Any, tmp_path: Any) -> None:
    """A title that is a number, an id that is none: the run goes on, and the host keeps what does not fit."""
    repository = full(account)
    repository.issues[1]["title"] = 7
    repository.issues[2]["id"] = "x"
    place = ["--set", f"endpoint={account.github.url}", "--answer-file", account.answer_file(tmp_path)]
    result = headwater.type("collect", "github/me", *place).result
    counts = {row["stream"]: row for row in result["streams"]}
    assert result["status"] == "succeeded"
    assert (counts["issues"]["accepted"], counts["issues"]["rejected"]) == (1, 1)
