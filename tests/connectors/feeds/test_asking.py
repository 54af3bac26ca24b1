"""How feeds are asked for: conditionally, from where they live, and not where nobody should ask; over real HTTP."""

from pathlib import Path
from typing import Any

import pytest
from connectors.feeds.reader import gaps, outcomes, rss, run, succeed, titles
from connectors.feeds.site import Site
from connectors.feeds.site import site as site_of
from servers.certificates import certify

from headwater.connectors.feeds import fetching


def test_a_feed_that_did_not_change_costs_a_304(site: Site) -> None:
    """The second run sends the validator, and gets no body."""
    url = site.put("/feed", rss("one", "two"))
    first = succeed(url)
    sent = site.sent_bytes
    second = succeed(url, state=first.state)
    assert titles(first) == ["one", "two"]
    assert second.done["records_emitted"] == 0
    assert second.state == first.state
    assert site.statuses == [200, 304]
    assert site.sent_bytes == sent
    assert outcomes(second) == {"unchanged": 1}


def test_last_modified_is_sent_back_as_it_came(site: Site) -> None:
    """Where there is no ETag; the server's date is no date to us, but a word."""
    url = site.put("/feed", rss("one"), validated=False, headers={"Last-Modified": "Tue, 01 Oct 2024 10:00:00 GMT"})
    succeed(url, state=succeed(url).state)
    assert site.requests[1][1]["If-Modified-Since"] == "Tue, 01 Oct 2024 10:00:00 GMT"
    assert "If-None-Match" not in site.requests[1][1]


def test_without_validators_only_what_changed_comes(site: Site) -> None:
    """The feed is read whole; what was sent before is not sent again."""
    url = site.put("/feed", rss("one", "two"), validated=False)
    first = succeed(url)
    site.put("/feed", rss("three", "two", "one").replace("About one", "More about one"), validated=False)
    second = succeed(url, state=first.state)
    assert sorted(titles(second)) == ["one", "three"]
    assert succeed(url, state=second.state).done["records_emitted"] == 0


def test_what_a_feed_no_longer_shows_is_kept(site: Site) -> None:
    """No delete, and what comes back is what it was."""
    url = site.put("/feed", rss("one", "two"))
    first = succeed(url)
    site.put("/feed", rss("two"))
    second = succeed(url, state=first.state)
    assert [m for m in second.messages if m.get("op") == "delete"] == []
    assert list(second.state["entries"]["feeds"][url]["marks"]) == ["two"]


@pytest.mark.parametrize(("status", "lasts"), [(301, True), (308, True), (302, False), (307, False), (303, False)])
def test_a_permanent_move_is_remembered_and_another_is_not(site: Site, status: int, lasts: bool) -> None:
    """The records keep the address that the owner set; the next request goes where the feed lives."""
    old, new = site.url("/old"), site.put("/new", rss("one"))
    site.put("/old", status=status, headers={"Location": "/new"}, validated=False)
    first = succeed(old)
    (feed,) = first.records("feeds")
    assert (feed["url"], feed["current_url"]) == (old, new if lasts else old)
    assert first.records("entries")[0]["feed"] == old
    succeed(old, state=first.state)
    assert [path for path, *_ in site.requests[2:]] == (["/new"] if lasts else ["/old", "/new"])


def test_a_permanent_move_behind_a_passing_one_is_none(site: Site) -> None:
    """Where it leads today says nothing of where it leads tomorrow."""
    site.put("/new", rss("one"))
    site.put("/middle", status=301, headers={"Location": "/new"})
    url = site.put("/old", status=302, headers={"Location": "/middle"})
    assert succeed(url).records("feeds")[0]["current_url"] == url


def test_a_feed_that_is_gone_is_asked_no_more(site: Site) -> None:
    """410: the record says so and keeps its title; the entries stay."""
    url = site.put("/feed", rss("one", title="Was here"))
    first = succeed(url)
    site.put("/feed", status=410)
    second = succeed(url, state=first.state)
    (feed,) = second.records("feeds")
    assert (feed["status"], feed["title"]) == ("gone", "Was here")
    third = succeed(url, state=second.state)
    assert third.done["records_emitted"] == 0
    assert site.statuses == [200, 410]
    assert [m for m in second.messages if m.get("op") == "delete"] == []


def test_a_feed_that_was_never_there_may_be_gone(site: Site) -> None:
    """There is a record of it, with nothing in it."""
    (feed,) = succeed(site.put("/feed", status=410)).records("feeds")
    assert (feed["status"], feed["title"], feed["kind"]) == ("gone", None, None)


FAILING: dict[str, tuple[dict[str, Any], tuple[str, bool]]] = {
    "404": ({"status": 404}, ("refused", True)),
    "401": ({"status": 401}, ("refused", False)),
    "500": ({"status": 500}, ("refused", True)),
    "429": ({"status": 429}, ("rate_limited", True)),
    "a-page": ({"body": b"<html><p>Hello<br></html>"}, ("not_a_feed", True)),
    "nothing": ({"body": b"", "validated": False}, ("not_a_feed", True)),
    "an-image": ({"body": b"\x89PNG\r\n" + bytes(range(256))}, ("not_a_feed", True)),
    "too-large": ({"body": b" " * (9 * 1024 * 1024)}, ("too_large", False)),
    "a-gzip-bomb": ({"body": b" " * (80 * 1024 * 1024), "packed": True}, ("too_large", False)),
    "no-gzip": ({"headers": {"Content-Encoding": "gzip"}, "body": b"xx"}, ("broken_encoding", True)),
    "brotli": ({"headers": {"Content-Encoding": "br"}, "body": b"x"}, ("unknown_encoding", False)),
    "cut": ({"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx"}, ("cut_off", True)),
    "garbage": ({"raw": b"garbage\r\n\r\n"}, ("connection_failed", True)),
    "headers": ({"raw": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200}, ("connection_failed", True)),
    "a-loop": ({"status": 301, "headers": {"Location": "/a-loop"}}, ("too_many_redirects", False)),
    "a-file": ({"status": 301, "headers": {"Location": "file:///etc/passwd"}}, ("not_an_http_address", False)),
    "no-address": ({"status": 301, "headers": {"Location": "http://["}}, ("not_an_http_address", False)),
}


def test_a_feed_that_fails_is_a_gap_and_costs_no_other(site: Site) -> None:
    """The ones before it and behind it are collected; its own place stays where it was, and it may come later."""
    before, after = site.put("/a", rss("a")), site.put("/b", rss("b"))
    urls = {site.put(f"/{name}", **{"body": b"", **page}): gap for name, (page, gap) in FAILING.items()}
    transcript = succeed(before, *urls, after)
    assert titles(transcript) == ["a", "b"]
    assert gaps(transcript) == urls
    assert outcomes(transcript) == {"emitted": 2, "gapped": len(urls)}
    for name in FAILING:
        site.put(f"/{name}", rss(name))
    again = succeed(before, *urls, after, state=transcript.state)
    assert titles(again) == list(FAILING)
    assert gaps(again) == {}


def test_a_server_that_asks_to_wait_is_not_asked(site: Site) -> None:
    """Retry-After holds over runs."""
    url = site.put("/feed", status=429, headers={"Retry-After": "3600"})
    other = site.put("/other", rss("one"))
    first = succeed(url, other)
    second = succeed(url, other, state=first.state)
    assert gaps(second) == {url: ("asked_to_wait", True)}
    assert [path for path, *_ in site.requests] == ["/feed", "/other", "/other"]


@pytest.mark.parametrize(
    "page", [{"hangs": True}, {"drips": b"HTTP/1.1 200 OK\r\nX: "}, {"drips": b"HTTP/1.1 200 OK\r\n\r\n"}]
)
def test_a_feed_that_never_comes_to_an_end_is_cut_off(
    site: Site, page: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that says nothing, and ones that say a byte now and then: in the head, and in the body."""
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 0.7)
    url = site.put("/feed", **page)
    with pytest.raises(fetching.Unreachable) as raised:
        fetching.Fetcher(allow_private=True).get(url, {})
    assert (raised.value.reason, raised.value.passes) == ("timeout", True)


def test_where_no_feed_can_be_reached_the_run_fails(site: Site) -> None:
    """It is the network that is missing: nothing is claimed."""
    transcript = run("http://127.0.0.1:9/feed", "http://nowhere.invalid/feed")
    assert transcript.done["status"] == "failed"
    assert transcript.done["error"]["recovery_hint"] == "retry_by_runtime"
    assert transcript.state == {}


def test_private_addresses_are_asked_only_where_that_is_said(site: Site) -> None:
    """Neither by their address nor by a name that stands for it."""
    url = site.put("/feed", rss("one"))
    named = url.replace("127.0.0.1", "localhost")
    transcript = succeed(url, named, options={"allow_private": False})
    assert gaps(transcript) == {url: ("private_address", False), named: ("private_address", False)}
    assert site.requests == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::808:808", True),
        ("2002:7f00:1::", False),
        ("nonsense", False),
    ],
)
def test_an_address_is_public_or_not(address: str, public: bool) -> None:
    """Also one that stands for another (RFC 4291, RFC 6052, RFC 3056)."""
    assert fetching._is_public(address) is public


@pytest.mark.parametrize("url", ["http://user:secret@127.0.0.1/", "http://127.0.0.1:0/", "https://exämple.invalid/"])
def test_an_address_that_cannot_be_asked_is_a_gap(site: Site, url: str) -> None:
    """Passwords in addresses, ports that are none."""
    assert gaps(succeed(url, site.put("/feed", rss("one")))) == {url: ("not_an_http_address", False)}


def test_an_address_with_a_token_in_it_may_fail_too(site: Site) -> None:
    """What would be refused as a locator is none: the feed is named by its key."""
    url = site.put("/feed?token=abcdefgh", status=500)
    assert gaps(succeed(url, site.put("/other", rss("one")))) == {url: ("refused", True)}


def test_the_feeds_alone_are_asked_without_their_entries(site: Site) -> None:
    """So a gap is tried again, for the feed that is named."""
    url, other = site.put("/feed", rss("one")), site.put("/other", rss("two"))
    transcript = succeed(url, other, streams=[{"name": "feeds", "resources": [url]}])
    assert [record["url"] for record in transcript.records("feeds")] == [url]
    assert transcript.records("entries") == []
    assert [path for path, *_ in site.requests] == ["/feed"]


def test_entries_alone_come_without_their_feeds(site: Site) -> None:
    """A feed that fails is then skipped aloud."""
    url, broken = site.put("/feed", rss("one")), site.put("/broken", "none")
    transcript = succeed(url, broken, streams=["entries"])
    assert titles(transcript) == ["one"]
    assert [m["reason"] for m in transcript.messages if m["type"] == "SKIP_RESULT"] == ["not_a_feed"]


def test_a_feed_that_is_no_longer_named_is_forgotten_and_kept(site: Site) -> None:
    """Nothing is deleted; named again, it is read whole."""
    url, other = site.put("/feed", rss("one")), site.put("/other", rss("two"))
    first = succeed(url, other)
    second = succeed(other, state=first.state)
    assert second.done["records_emitted"] == 0
    assert titles(succeed(url, other, state=second.state)) == ["one"]


def test_https_is_trusted_by_its_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by an authority that the system knows is read; the same one is not where the system knows it not."""
    certify(tmp_path)
    with site_of(tmp_path) as secure:
        url = secure.put("/feed", rss("one"))
        fetcher = fetching.Fetcher(allow_private=True)
        with pytest.raises(fetching.Unreachable, match="certificate_not_trusted"):
            fetcher.get(url, {})
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert fetcher.get(url, {}).status == 200
        with pytest.raises(fetching.Unreachable, match="certificate_not_trusted"):
            fetcher.get(url.replace("127.0.0.1", "localhost"), {})


def test_a_redirect_from_https_to_http_is_not_followed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for safely is not answered in the open."""
    certify(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with site_of(tmp_path) as secure:
        url = secure.put("/feed", status=301, headers={"Location": site.put("/feed", rss("one"))})
        with pytest.raises(fetching.Unreachable, match="redirect_to_plain_http"):
            fetching.Fetcher(allow_private=True).get(url, {})
    assert site.requests == []
