"""Ways of speaking that are not the profile's own: known by name, read by shape, and nothing beside."""

import json

import pytest

from headwater.wire.compatibility import PDPP_REFERENCE, GapsPage, read_extension
from headwater.wire.decode import NotAMessage

SAID = {
    "ASSISTANCE": {"message": "Approve on your phone", "owner_action": "act_elsewhere"},
    "ASSISTANCE_STATUS": {"assistance_request_id": "a1", "status": "resolved"},
    "DETAIL_GAP_ATTEMPTED": {"stream": "mail", "gap_id": "7", "lease_id": "l", "reference_only": True},
    "DETAIL_GAP_RECOVERED": {"stream": "mail", "gap_id": "7", "record_key": 3, "reference_only": True},
    "DETAIL_GAPS_PAGE_REQUEST": {"request_id": "p1", "reference_only": True, "max_bytes": 100},
}

each = pytest.mark.parametrize("kind", SAID)


def line(kind: str, **members: object) -> bytes:
    """A line of a connector."""
    return json.dumps({"type": kind, **SAID.get(kind, {}), **members}).encode()


@each
def test_its_messages_are_read(kind):
    """Each is named; one is shown, and one waits for an answer."""
    said = read_extension(PDPP_REFERENCE, line(kind))
    assert said is not None
    assert said.kind == kind
    assert (said.shown is not None) == (kind == "ASSISTANCE")
    assert (said.answer == GapsPage("p1", [])) == (kind == "DETAIL_GAPS_PAGE_REQUEST")


@each
def test_without_its_name_they_are_nothing(kind):
    """A connector that names no compatibility has none."""
    assert read_extension("", line(kind)) is None


@each
def test_a_message_without_its_members_breaks_the_protocol(kind):
    """Known is not the same as anything goes."""
    with pytest.raises(NotAMessage) as raised:
        read_extension(PDPP_REFERENCE, json.dumps({"type": kind}).encode())
    assert raised.value.rule == "invalid_message"


@pytest.mark.parametrize(
    "text", ['{"type":"BROWSER_SURFACE_REQUEST"}', '{"type":7}', "[]", "nonsense", '{"type":"X","a":' + "[" * 5000]
)
def test_what_it_does_not_have_is_nothing_either(text):
    """The list is closed."""
    assert read_extension(PDPP_REFERENCE, text.encode()) is None


def test_a_request_for_a_page_says_that_it_is_only_a_reference():
    """The member is the fence between their messages and the profile's."""
    with pytest.raises(NotAMessage):
        read_extension(PDPP_REFERENCE, line("DETAIL_GAPS_PAGE_REQUEST", reference_only=False))
