"""Which members a failure may have is the contract's table, member by member."""

import pytest

from headwater.codes import ALWAYS, CONTRACT, INTEGRATED, WRITTEN

# Each member of a failure, and the only codes it may stand with (cli-types section 4).
ONLY = {
    "configuration_rule": {"invalid_configuration"},
    "configuration_format": {"invalid_configuration"},
    "instance_id": {"invalid_configuration"},
    "configuration_bytes": {"invalid_configuration"},
    "configuration_limit": {"invalid_configuration"},
    "instances": {"instance_ambiguous"},
    "connections": {"connection_unresolved"},
    "approval_steps": {"approval_required"},
    "store_version": {"metadata_schema_newer"},
    "binary_version": {"metadata_schema_newer"},
    "feature": {"unmet_feature"},
    "file": {"digest_mismatch"},
    "clock_refusal": {"unavailable"},
    "clock_sources": {"unavailable"},
    "installed_provider_path": {"unavailable"},
    "installed_provider_failure": {"unavailable"},
    "service_code": {"service_failure", "unavailable"},
    "service_reason": {"service_failure", "forbidden", "not_granted"},
    "retry_after_seconds": {"service_failure", "unavailable"},
    "revision_given": {"invalid_input"},
    "revision_expected": {"invalid_input", "lifecycle_conflict"},
    "read_with": {"invalid_input", "lifecycle_conflict"},
    "field": {"invalid_input", "lifecycle_conflict", "unsupported"},
}


@pytest.mark.clause("CLI-1131")
@pytest.mark.parametrize("member", ONLY)
def test_a_member_stands_with_its_own_codes_alone(member):
    assert {code for code, row in CONTRACT.items() if member in row.members.split()} == ONLY[member]


@pytest.mark.clause("CLI-1130")
def test_beside_its_table_a_failure_has_opaque_references_alone():
    assert {"acquisition", "connection", "request_id"} == ALWAYS


@pytest.mark.clause("CLI-712")
def test_what_became_of_a_write_is_told_whatever_it_failed_by():
    assert {"mutation", "source_audit"} == WRITTEN


def test_the_integration_contract_adds_no_text_to_it():
    """A code of a closed list, a flag and a number, each on both faces."""
    assert {"integration_code", "retryable", "retry_after"} == INTEGRATED
