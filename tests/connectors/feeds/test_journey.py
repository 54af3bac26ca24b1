"""Feeds collected as a person does it: through the host, confined; twice, cut off, and checked."""

from typing import Any

from connectors.cutting import killed_in_the_midst
from connectors.feeds.reader import CONNECTOR, rss
from connectors.feeds.site import Site

INSTANCE = "feeds/mine"


def settings(*urls: str) -> list[str]:
    """Return the options as words."""
    return ["--set", f"urls={','.join(urls)}", "--set", "allow_private=true"]


def test_feeds_are_collected_twice_and_one_that_failed_comes_later(headwater: Any, site: Site) -> None:
    """The gap is told and closes; what is new comes, what is not shown any more stays, and a search finds it."""
    good, bad = site.put("/good", rss("lighthouse", "harbour")), site.put("/bad", status=503)
    first = headwater.type("collect", INSTANCE, *settings(good, bad))
    assert first.status == 0, first.stderr
    assert [gap["key"] for gap in headwater.type("gaps", "list", INSTANCE).result["items"]] == [bad]
    site.put("/good", rss("harbour", "bridge"))
    site.put("/bad", rss("island"))
    assert headwater.type("collect", INSTANCE).status == 0
    names = {"lighthouse", "harbour", "bridge"}
    assert headwater.keys("entries", INSTANCE) == {f'["{good}","{name}"]' for name in names} | {f'["{bad}","island"]'}
    assert headwater.keys("feeds", INSTANCE) == {good, bad}
    assert headwater.type("gaps", "list", INSTANCE).result["items"] == []
    (found,) = headwater.type("records", "search", "lighthouse").result["items"]
    assert found["stream"] == "entries"
    assert headwater.type("collect", INSTANCE).status == 0
    assert site.statuses[-2:] == [304, 304]


def test_kill_9_in_the_midst_loses_nothing_and_goes_on(headwater: Any, site: Site) -> None:
    """Host and connector die while a feed is awaited; those before it that were saved are asked conditionally."""
    urls = [site.put(f"/{number}", rss(f"entry-{number}")) for number in range(25)]
    site.put("/22", hangs=True)
    killed_in_the_midst(headwater, "entries", INSTANCE, *settings(*urls))
    site.put("/22", rss("entry-22"))
    assert headwater.type("collect", INSTANCE).status == 0
    assert len(headwater.keys("entries", INSTANCE)) == 25
    assert site.statuses[22:].count(304) == 20


def test_it_conforms(headwater: Any, site: Site) -> None:
    """Through every pack: whole, resumed, narrowed, killed, slowly read, and without a network."""
    dated = rss("one", "two").replace("01 Oct", "02 Oct")
    urls = [site.put("/a", rss("one", "two", "three")), site.put("/b", dated), site.put("/c", rss("four"))]
    result = headwater.type("connectors", "check", str(CONNECTOR), *settings(*urls)).result
    verdicts = {row["clause"]: row["verdict"] for row in result["clauses"]}
    assert [clause for clause, verdict in verdicts.items() if verdict == "fail"] == []
    assert result["left_out"] == {}
    shown = ["CP-410", "CP-447", "CP-311", "CP-312", "CP-317", "CP-405", "CP-013", "CP-204", "CP-214"]
    assert [clause for clause in shown if verdicts[clause] != "pass"] == []
