"""XML from a server is read without trust, and a multistatus as RFC 4918 has it."""

import pytest

from headwater.connectors.dav import xml
from headwater.connectors.dav.xml import DAV, GarbledError, multistatus, parse, resolved

URL = "https://dav.example.org/ada/work/"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<a>",
        b"<a/><b/>",
        b"\x00",
        b"<a>\xff</a>",
        b"<a>&b;</a>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<!DOCTYPE a><a/>",
        b'<?xml version="1.0" encoding="nonsense"?><a/>',
        b"<a>" * 65 + b"</a>" * 65,
    ],
)
def test_what_is_no_plain_xml_is_refused(body: bytes) -> None:
    """A document type is refused as such, so that no entity is ever declared."""
    with pytest.raises(GarbledError):
        parse(body)


def test_depth_and_size_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly so many are read, and no more."""
    assert parse(b"<a>" * 64 + b"</a>" * 64).tag == "a"
    monkeypatch.setattr(xml, "ELEMENTS", 10)
    assert len(parse(b"<a>" + b"<b/>" * 9 + b"</a>")) == 9
    with pytest.raises(GarbledError):
        parse(b"<a>" + b"<b/>" * 10 + b"</a>")


def test_prefixes_are_nothing_but_prefixes() -> None:
    """Names are compared by their namespace."""
    root = parse(b'<x:multistatus xmlns:x="DAV:"><y:response xmlns:y="DAV:"/></x:multistatus>')
    assert root.tag == DAV + "multistatus"
    assert [node.tag for node in root] == [DAV + "response"]


@pytest.mark.parametrize("body", [b"<multistatus/>", b'<response xmlns="DAV:"/>'])
def test_another_document_is_no_multistatus(body: bytes) -> None:
    """Also one of the right name in no namespace."""
    with pytest.raises(GarbledError):
        multistatus(body, URL)


def test_a_multistatus_is_read_property_by_property() -> None:
    """A property counts where its own status is 200; several references share a status."""
    found = multistatus(
        b"""<multistatus xmlns="DAV:">
        <response><href>a.ics</href>
          <propstat><prop><getetag>"1"</getetag></prop><status>HTTP/1.1 200 OK</status></propstat>
          <propstat><prop><displayname>No</displayname></prop><status>HTTP/1.1 404 Not Found</status></propstat>
        </response>
        <response><href>/ada/work/b.ics</href><href>/ada/work/c.ics</href>
          <status>HTTP/1.1 404 Not Found</status></response>
        <response><href>d.ics</href>
          <propstat><prop><getetag/></prop><status>HTTP/1.1 403 Forbidden</status></propstat></response>
        <sync-token> urn:t </sync-token></multistatus>""",
        URL,
    )
    assert [(item.path, item.status) for item in found.resources] == [
        ("/ada/work/a.ics", 200),
        ("/ada/work/b.ics", 404),
        ("/ada/work/c.ics", 404),
        ("/ada/work/d.ics", 403),
    ]
    assert found.resources[0].text(DAV + "getetag") == '"1"'
    assert found.resources[0].text(DAV + "displayname") == ""
    assert found.sync_token == "urn:t"


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("a%20b.ics", "https://dav.example.org/ada/work/a%20b.ics"),
        ("/x/a b.ics", "https://dav.example.org/x/a%20b.ics"),
        ("%7Ea%3ab.ics", "https://dav.example.org/ada/work/~a:b.ics"),
        ("a%2Fb.ics", "https://dav.example.org/ada/work/a%2Fb.ics"),
        ("a%ff.ics", "https://dav.example.org/ada/work/a%FF.ics"),
        ("é.ics", "https://dav.example.org/ada/work/%C3%A9.ics"),
        (" a.ics?x#y ", "https://dav.example.org/ada/work/a.ics"),
        ("https://other.example.org/z", "https://other.example.org/z"),
        ("http://[broken", ""),
    ],
)
def test_a_reference_has_one_spelling(href: str, expected: str) -> None:
    """What is escaped and need not be is one with what is not."""
    assert resolved(URL, href) == expected
