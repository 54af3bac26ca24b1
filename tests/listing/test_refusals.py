"""What each operation on an account refuses, and by which code: the same for all of them."""

import pytest

OPERATIONS = {"refresh": (), "configure": ("--set", "currency=CHF"), "disconnect": ()}
each_operation = pytest.mark.parametrize("operation", OPERATIONS)


def refused(ada, operation, name, status=1):
    failure = ada.type("connections", operation, name, *OPERATIONS[operation], status=status)
    return failure["code"], failure["stage"]


@pytest.mark.clause("INT-426", "INT-135", "INT-153")
@each_operation
def test_what_is_not_there_or_not_declared_is_refused(ada, operation):
    """An unknown instance, a connector that signs in to nothing, an action that is not there: nobody is asked."""
    ada.manifest(actions={})
    ada.type("instances", "add", "git/me", "--set", f"path={ada.folder}")
    assert refused(ada, operation, "acme-tickets/you") == ("not_found", "admission")
    assert refused(ada, operation, "nothing/me") == ("not_found", "admission")
    assert refused(ada, operation, "git/me") == ("not_found", "admission")
    assert refused(ada, operation, "acme-tickets/me") == ("unsupported", "admission")
    assert ada.type("runs", "list")["items"] == []


@pytest.mark.clause("INT-426")
def test_an_account_that_is_gone_is_not_found(ada):
    """And one that is disabled keeps what it has, and connects no more."""
    ada.type("connectors", "disable", "acme-tickets")
    assert ada.refresh()["status"] == "succeeded"
    ada.type("connections", "disconnect", "acme-tickets/me")
    words = ["acme-tickets/me", "--credential-file", str(ada.entry)]
    assert ada.type("connections", "connect", *words, status=1)["code"] == "forbidden"
    assert ada.refresh(status=1)["code"] == "revoked"
