"""Feeds in the shapes that they come in: every kind, every encoding, and what is wrong with real ones."""

import time
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from headwater.connectors.feeds.document import Feed, NotAFeed, read_feed
from headwater.connectors.feeds.records import entry_records, feed_record

BASE = "https://example.org/feed"
RSS_091 = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd">
<rss version="0.91"><channel><title>Caf\xe9 &eacute;t&eacute;</title><link>http://example.org/</link>
<description>old</description><language>en-us</language>
<item><title>First &amp; only</title><link>http://example.org/1</link><description>plain</description></item>
</channel></rss>"""
RSS_10 = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:d="http://purl.org/dc/elements/1.1/" xmlns:c="http://purl.org/rss/1.0/modules/content/">
<channel rdf:about="http://example.org/"><title>RDF</title><link>http://example.org/</link>
<items><rdf:Seq><rdf:li rdf:resource="http://example.org/1"/></rdf:Seq></items></channel>
<item rdf:about="urn:x:1"><title>One</title><link>http://example.org/1</link><d:creator>Ann</d:creator>
<d:date>2024-10-01T12:00:00+02:00</d:date><d:subject>things</d:subject>
<c:encoded><![CDATA[<p>Full &amp; long</p>]]></c:encoded><description>short</description></item></rdf:RDF>"""
RSS_20 = """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">
<channel><title>Pod</title><atom:link rel="self" href="https://example.org/feed"/><link>https://example.org/</link>
<lastBuildDate>Tue, 01 Oct 2024 10:00:00 +0200</lastBuildDate>
<item><title>Episode</title><guid isPermaLink="false">ep-1</guid><pubDate>Tue, 01 Oct 2024 08:00:00 EST</pubDate>
<enclosure url="/1.mp3" length="1234" type="audio/mpeg"/><itunes:author>Bee</itunes:author>
<category>a</category><category>b</category><category>a</category></item>
<item><title>By link</title><guid>https://example.org/2</guid></item></channel></rss>"""
ATOM_10 = """<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de">
<title type="html">A &lt;i&gt;feed&lt;/i&gt;</title><subtitle>Sub</subtitle><link href="/"/>
<updated>2024-10-02T00:00:00Z</updated>
<entry><id>tag:1</id><title>One</title><link rel="self" href="/self"/><link href="/one"/>
<published>2024-10-01T00:00:00.5Z</published>
<updated>2024-10-02T00:00:00Z</updated><author><name>Ann</name><email>a@example.org</email></author>
<category term="t" label="T"/>
<link rel="enclosure" href="/f.pdf" type="application/pdf"/>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>1 &lt; 2</p><p>there</p></div></content>
</entry></feed>"""
ATOM_03 = """<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>Old</title><tagline>tag</tagline>
<entry><id>1</id><title>T</title><issued>2004-01</issued><modified>2004-02-03T04:05:06Z</modified>
<content mode="escaped" type="text/html">&lt;b&gt;bold&lt;/b&gt;</content></entry></feed>"""
PREFIXED = """<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title>P</a:title><a:entry><a:id>1</a:id>
<a:title>One</a:title><a:content>1 &lt; 2</a:content></a:entry></a:feed>"""


def read(document: str | bytes, charset: str | None = None) -> tuple[dict[str, Any], list[dict[str, Any]], Feed]:
    """Return a feed's record and those of its entries."""
    feed = read_feed(document.encode() if isinstance(document, str) else document, charset)
    return feed_record(BASE, BASE, feed), list(entry_records(BASE, BASE, feed, 1_000)), feed


def test_rss_091_with_its_doctype_and_entities() -> None:
    """The DTD is not fetched; its entities are those of HTML."""
    feed, (entry,), _ = read(RSS_091.encode("latin-1"))
    assert (feed["kind"], feed["version"], feed["title"], feed["language"]) == ("rss", "0.91", "Café été", "en-us")
    assert (entry["id"], entry["id_source"]) == ("http://example.org/1", "link")
    assert (entry["title"], entry["text"], entry["source_created_at"]) == ("First & only", "plain", None)
    assert not entry["lossy"]


def test_rss_10_with_prefixes_of_its_own() -> None:
    """Namespaces count, not prefixes; the full text goes before the short one."""
    feed, (entry,), _ = read(RSS_10)
    assert (feed["kind"], feed["title"]) == ("rdf", "RDF")
    assert (entry["id"], entry["authors"], entry["categories"]) == ("urn:x:1", ["Ann"], ["things"])
    assert (entry["text"], entry["html"]) == ("Full & long", "<p>Full &amp; long</p>")
    assert entry["source_created_at"] == "2024-10-01T10:00:00Z"


def test_rss_20_with_enclosures_and_atom_inside() -> None:
    """The channel's own link, not that of Atom; a zone by its name."""
    feed, (episode, other), _ = read(RSS_20)
    assert (feed["link"], feed["source_updated_at"]) == ("https://example.org/", "2024-10-01T08:00:00Z")
    assert episode["enclosures"] == [
        {"url": "https://example.org/1.mp3", "mime_type": "audio/mpeg", "size_bytes": 1234}
    ]
    assert (episode["id"], episode["link"], episode["categories"]) == ("ep-1", None, ["a", "b"])
    assert (episode["authors"], episode["source_created_at"]) == (["Bee"], "2024-10-01T13:00:00Z")
    assert (other["link"], other["id_source"]) == ("https://example.org/2", "guid")


def test_atom_10() -> None:
    """Links by their relation, xhtml as text and markup, times with fractions."""
    feed, (entry,), _ = read(ATOM_10)
    assert (feed["title"], feed["description"], feed["link"]) == ("A feed", "Sub", "https://example.org/")
    assert feed["language"] == "de"
    assert (entry["link"], entry["authors"], entry["categories"]) == ("https://example.org/one", ["Ann"], ["T"])
    assert (entry["source_created_at"], entry["source_updated_at"]) == ("2024-10-01T00:00:00Z", "2024-10-02T00:00:00Z")
    assert entry["text"] == "1 < 2\n\nthere"
    assert entry["html"] == "<div><p>1 &lt; 2</p><p>there</p></div>"
    assert entry["enclosures"][0]["url"] == "https://example.org/f.pdf"


def test_atom_03_and_an_atom_with_a_prefix() -> None:
    """The older namespace, part of a date, escaped content; `a:feed`."""
    feed, (entry,), _ = read(ATOM_03)
    assert (feed["version"], feed["description"]) == ("0.3", "tag")
    assert (entry["source_created_at"], entry["text"]) == ("2004-01-01T00:00:00Z", "bold")
    feed, (entry,), _ = read(PREFIXED)
    assert (feed["title"], entry["title"], entry["text"], entry["html"]) == ("P", "One", "1 < 2", None)


WHOLE = '<rss version="2.0"><channel><title>x</title><item><guid>1</guid><title>%s</title></item></channel></rss>'


@pytest.mark.parametrize(
    ("document", "charset", "title", "lossy"),
    [
        pytest.param((WHOLE % "é").encode(), None, "é", False, id="UTF-8 unsaid"),
        pytest.param((WHOLE % "é").encode("latin-1"), "iso-8859-1", "é", False, id="Latin-1 by the server"),
        pytest.param(
            ('<?xml version="1.0" encoding="windows-1252"?>' + WHOLE % "“é”").encode("cp1252"),
            None,
            "“é”",
            False,
            id="declared",
        ),
        pytest.param(b"\xef\xbb\xbf" + (WHOLE % "é").encode(), "iso-8859-1", "é", False, id="a mark goes first"),
        pytest.param(b"\xff\xfe" + (WHOLE % "é").encode("utf-16-le"), None, "é", False, id="UTF-16"),
        pytest.param(b"\n\n " + b'<?xml version="1.0"?>' + (WHOLE % "é").encode(), None, "é", False, id="space before"),
        pytest.param((WHOLE % "é").encode("latin-1"), None, "é", True, id="Latin-1 unsaid"),
        pytest.param((WHOLE % "é").encode(), "klingon", "é", True, id="no such encoding"),
        pytest.param(
            (WHOLE % "a & b &nbsp;c &bogus; &#8211;").encode(), None, "a & b c &bogus; –", True, id="ampersands"
        ),
        pytest.param((WHOLE % "a\x0bb\x00c").encode(), None, "ab\ufffdc", True, id="control characters"),
        pytest.param((WHOLE % "<![CDATA[a & b &nbsp; <i>c</i>]]> & d").encode(), None, "a & b c & d", True, id="CDATA"),
        pytest.param((WHOLE % "x &lt; y and AT&amp;T").encode(), None, "x < y and AT&T", False, id="no markup"),
        pytest.param((WHOLE % "<media:thing>in</media:thing>out").encode(), None, "out", False, id="undeclared prefix"),
    ],
)
def test_real_feeds_are_read_whatever_is_wrong(document: bytes, charset: str | None, title: str, lossy: bool) -> None:
    """What had to be mended is flagged."""
    _, (entry,), feed = read(document, charset)
    assert entry["title"] == title
    assert feed.lossy is lossy


def test_a_feed_that_breaks_off_has_the_entries_before() -> None:
    """The last one is not half read."""
    whole = WHOLE % "One"
    _, entries, feed = read(whole.replace("</channel>", "<item><guid>2</guid><title>Tw"))
    assert [entry["title"] for entry in entries] == ["One"]
    assert feed.lossy


BOMB = '<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">%s]>' + WHOLE % "&j;"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            BOMB % "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)),
            id="laughs",
        ),
        pytest.param('<!DOCTYPE b [<!ENTITY a "' + "a" * 100_000 + '">]>' + WHOLE % ("&a;" * 10_000), id="quadratic"),
        pytest.param("<rss><channel>" + "<a>" * 100_000, id="deep"),
        pytest.param("<html><body>no feed</body></html>", id="a page"),
        pytest.param('{"version": "https://jsonfeed.org/version/1"}', id="JSON"),
        pytest.param("", id="nothing"),
        pytest.param("<rss><channel><title>x", id="broken off before any entry"),
    ],
)
def test_what_is_no_feed_or_a_bomb_is_refused(document: str) -> None:
    """At once, and in little memory."""
    tracemalloc.start()
    begun = time.process_time()
    with pytest.raises(NotAFeed):
        read(document)
    assert time.process_time() - begun < 5
    assert tracemalloc.get_traced_memory()[1] < 64 * 1024 * 1024
    tracemalloc.stop()


def test_an_entity_that_stands_elsewhere_is_not_read() -> None:
    """Neither a file nor an address; HTML's own by name, as feeds declare them, do no harm."""
    outside = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY % h PUBLIC "-//W3C//ENTITIES Latin 1//EN" "http://127.0.0.1:9/">%h;]>'
    _, (entry,), _ = read(outside + WHOLE % "a&x;b")
    assert entry["title"] in {"ab", "a&x;b"}


@pytest.mark.parametrize("unit", ["<", "&", "<a>", "<![CDATA[", "<!--", "&#", "]]>", "<p ", "&amp;"])
def test_no_content_makes_it_slow(unit: str) -> None:
    """Half a megabyte of what is slow elsewhere, as text and as escaped markup."""
    escaped = unit.replace("&", "&amp;").replace("<", "&lt;")
    for text in (unit * (500_000 // len(unit)), escaped * (500_000 // len(escaped))):
        begun = time.process_time()
        with suppress(NotAFeed):
            read(f"<rss><channel><item><guid>1</guid><description>{text}</description></item></channel></rss>")
        assert time.process_time() - begun < 5


def test_entries_are_told_apart_by_what_tells_them_apart() -> None:
    """One guid for all is none; a link that all share is none; then it is the content. A long one is a digest."""
    items = [
        ("same", "/1", "a"),
        ("same", "/2", "b"),
        ("", "/s", "c"),
        ("", "/s", "d"),
        ("", "/s", "d"),
        ("x" * 900, "", "e"),
    ]
    feed = "".join(
        f"<item><guid isPermaLink='false'>{g}</guid><link>{k}</link><title>{t}</title></item>" for g, k, t in items
    )
    _, entries, _ = read(f"<rss><channel>{feed}</channel></rss>")
    assert [entry["title"] for entry in entries] == ["a", "b", "c", "d", "e"]
    assert [entry["id_source"] for entry in entries] == ["link", "link", "content", "content", "guid"]
    assert len({entry["id"] for entry in entries}) == 5
    assert len(entries[-1]["id"]) == 32


def test_what_a_feed_may_hold_is_bounded() -> None:
    """So many entries, so much text."""
    items = "".join(f"<item><guid>{n}</guid><description>{'y' * 2_000}</description></item>" for n in range(3_000))
    _, entries, _ = read(f"<rss><channel>{items}</channel></rss>")
    assert len(entries) == 2_000
    assert len(entries[0]["text"]) == 1_000
    assert entries[0]["text_truncated"]
