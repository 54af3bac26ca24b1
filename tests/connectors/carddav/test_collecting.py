"""The CardDAV connector against a real Radicale, and under the real host."""

from pathlib import Path
from typing import Any

import pytest
from connectors.dav.account import Account, deleted, kept, said


def card(uid: str, name: str) -> str:
    """Return a card."""
    return f"BEGIN:VCARD\nVERSION:3.0\nUID:{uid}\nFN:{name}\nN:{name};;;;\nEND:VCARD\n"


def filled(account: Account, count: int = 3) -> str:
    """Make an address book with cards, and return its path."""
    book = account.owner.make_address_book("Friends")
    for number in range(count):
        account.owner.put(f"{book}c{number}.vcf", card(f"c{number}", f"Friend {number}"))
    return book


def names(run: Any) -> list[str]:
    """Return the names on the cards that came."""
    return sorted(record["full_name"] for record in kept(run, "contacts"))


def test_everything_then_what_is_new(account: Account) -> None:
    """A calendar beside the address book is none of it."""
    account.owner.make_calendar("Work")
    book = filled(account)
    first = account.succeed()
    assert account.relay.asked[0].path == "/.well-known/carddav"
    assert [(record["id"], record["name"]) for record in first.records("address_books")] == [(book, "Friends")]
    assert names(first) == ["Friend 0", "Friend 1", "Friend 2"]
    account.owner.put(f"{book}c1.vcf", card("c1", "Changed"))
    account.owner.delete(f"{book}c2.vcf")
    second = account.succeed(first.state)
    assert names(second) == ["Changed"]
    assert deleted(second, "contacts") == [f"{book}c2.vcf"]
    third = account.succeed(second.state)
    assert said(third, "RECORD") == []
    assert account.relay.kinds == ["PROPFIND"] * 4


@pytest.mark.parametrize("path", ["", "/", "/{name}/"])
def test_the_endpoint_may_be_the_server_or_the_home(account: Account, path: str) -> None:
    """RFC 6764: the well-known address where only a server is named, else what is named."""
    filled(account, 1)
    run = account.succeed(None, endpoint=account.relay.url + path.format(name=account.owner.name))
    assert names(run) == ["Friend 0"]


def test_the_host_keeps_cards_and_the_check_passes(account: Account, headwater: Any, tmp_path: Path) -> None:
    """Nothing is rejected; a kill at any line, narrowed scopes, questions, no network."""
    filled(account)
    typed = account.typed(tmp_path)
    counts = headwater.type("collect", "carddav/me", *typed).result["streams"]
    assert [(row["accepted"], row["rejected"]) for row in counts] == [(1, 0), (3, 0)]
    packs = [word for pack in ("kill", "narrowed", "no-network") for word in ("--pack", pack)]
    result = headwater.type("connectors", "check", str(account.folder), *typed, *packs).result
    assert result["conforms"]
    assert [row for row in result["clauses"] if row["verdict"] == "fail"] == []
