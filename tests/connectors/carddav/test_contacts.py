"""The record of a card, vCard 3 and 4, and what is broken."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.connectors.carddav.contacts import record


def of(*lines: str, version: str = "4.0") -> dict[str, Any]:
    """Return the record of a card with these lines."""
    return record("/b/x.vcf", "/b/", '"1"', "\n".join(["BEGIN:VCARD", f"VERSION:{version}", *lines, "END:VCARD"]))


def test_a_card_of_version_3() -> None:
    """As Apple and most others write it: groups with labels, types in lists."""
    data = of(
        r"N:Lovelace\;X;Ada,Augusta;;Dr.;",
        "FN:Ada",
        r"ORG:Engines\, Ltd.;Analysis",
        "EMAIL;TYPE=INTERNET,HOME,pref:ada@example.org",
        "item1.TEL;TYPE=CELL:+44 1",
        "item1.X-ABLabel:_$!<Mobile>!$_",
        "item2.ADR;TYPE=WORK:;;1 Main\\nStreet;Town;;12345;UK",
        "item2.X-ABLabel:the shed",
        "PHOTO;ENCODING=b:AAAA",
        r"NICKNAME:A,B\,C",
        "BDAY:1815-12-10",
        "REV:2026-01-02T03:04:05Z",
        version="3.0",
    )
    assert data["name"]["family"] == ["Lovelace;X"]
    assert data["name"]["given"] == ["Ada", "Augusta"]
    assert data["name"]["prefixes"] == ["Dr."]
    assert data["organization"] == ["Engines, Ltd.", "Analysis"]
    assert data["emails"] == [
        {"value": "ada@example.org", "types": ["internet", "home"], "label": None, "preferred": True}
    ]
    assert data["phones"] == [{"value": "+44 1", "types": ["cell"], "label": "mobile", "preferred": False}]
    (address,) = data["addresses"]
    assert (address["street"], address["label"], address["country"]) == ("1 Main\nStreet", "the shed", "UK")
    assert (data["photo"], data["nicknames"], data["birthday"]) == ("inline", ["A", "B,C"], "1815-12-10")
    assert data["revised_at"] == "2026-01-02T03:04:05Z"
    assert data["fault"] is None


def test_a_card_of_version_4() -> None:
    """Values that are URIs, a preference by number, a group with members."""
    data = of(
        "KIND:group",
        "FN:Friends",
        'TEL;VALUE=uri;PREF=1;TYPE="voice,home":tel:+44-1',
        "MEMBER:urn:uuid:1",
        "ANNIVERSARY:--0203",
        "PHOTO:https://example.org/x.png",
        "REV:20260102T030405Z",
    )
    assert data["phones"] == [{"value": "+44-1", "types": ["voice", "home"], "label": None, "preferred": True}]
    assert (data["kind"], data["members"], data["anniversary"]) == ("group", ["urn:uuid:1"], "--0203")
    assert (data["photo"], data["revised_at"]) == ("uri", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "it has no component"),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR", "it has no card"),
        ("BEGIN:VCARD\nVERSION:2.1\nFN:Old\nEND:VCARD", "its version is neither 3.0 nor 4.0"),
        ("BEGIN:VCARD\nVERSION:4.0\nFN:Half", "it ends in the midst of a component"),
        ("BEGIN:VCARD\nVERSION:4.0\nEND:VCARD\nBEGIN:VCARD\nVERSION:4.0\nEND:VCARD", "it has more than one card"),
        ("BEGIN:VCARD\nVERSION:4.0\nnothing\nEND:VCARD", "1 of its lines cannot be read"),
    ],
)
def test_what_is_broken_is_kept_and_said(text: str, fault: str) -> None:
    """With what could be read."""
    data = record("/b/x.vcf", "/b/", "", text)
    assert (data["fault"], data["raw"]) == (fault, text)
    assert data["full_name"] == ("Old" if "Old" in text else None)


_PIECES = ["BEGIN:VCARD", "END:VCARD", "VERSION:4.0", "N:;\\", "ADR:;;;;;;;;;", "TEL;PREF=x:", "a.TEL:1", "REV:1"]


@given(st.lists(st.sampled_from(_PIECES), max_size=9).map("\n".join) | st.text())
def test_any_text_has_a_record(text: str) -> None:
    """Whatever a server holds, the run goes on, and the text is kept."""
    assert record("/b/x.vcf", "/b/", "", text)["raw"] == text
