"""Mail on an IMAP server: its mailboxes, the messages in them, and their attachments."""

import hashlib
import json
from collections import defaultdict
from contextlib import ExitStack
from functools import cache
from operator import attrgetter
from typing import Any

from headwater.connectors.imap.account import Account
from headwater.connectors.imap.responses import Listed, Refused, named
from headwater.connectors.imap.server import told
from headwater.connectors.imap.walk import Bounds, Walk
from headwater.sdk import Connector, Fail, RunContext, StreamRun

_SPECIAL = ("all", "archive", "drafts", "flagged", "important", "junk", "sent", "trash")

connector = Connector()


@cache
def account_of(run: RunContext) -> Account:
    """Sign in once for all streams of the run."""
    return Account.of(run)


@cache
def listed_of(run: RunContext) -> dict[str, Listed]:
    """Return the account's mailboxes by name; two that would have the same name keep theirs as the server writes it."""
    found: dict[str, Listed] = {}
    try:
        with told():
            rows = account_of(run).mailboxes()
    except Refused:
        raise Fail("The server does not list the mailboxes.", hint="unknown") from None
    for one in sorted(rows, key=attrgetter("raw")):
        name = "INBOX" if one.raw.upper() == b"INBOX" else named(one.raw)
        found[name if name not in found else ascii(one.raw)] = one
    if "INBOX" not in found:
        raise Fail("The server lists no INBOX: what it lists cannot be whole.", hint="unknown")
    return found


def selectable(one: Listed) -> bool:
    """Say whether a mailbox can be opened: some are but a name above others."""
    return not one.attributes & {"noselect", "nonexistent"}


@connector.stream("mailboxes")
def mailboxes(stream: StreamRun) -> None:
    """Collect the mailboxes that are new or changed; the list is whole, so one that it lacks is gone."""
    known: dict[str, str] = stream.cursor.get("mailboxes", {})
    present: dict[str, str] = {}
    for name, one in listed_of(stream.run).items():
        try:
            with told():
                numbers = account_of(stream.run).status(one.raw) if selectable(one) else {}
        except Refused:
            stream.skip("unreadable", f"The server tells nothing of the mailbox {name}.")
            present.update({name: known[name]} if name in known else {})
            continue
        data = _mailbox(name, one, numbers)
        present[name] = hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]
        if known.get(name) != present[name]:
            stream.emit(data)
    for name in sorted(known.keys() - listed_of(stream.run).keys()):
        stream.delete({"name": name})
    stream.save({"mailboxes": present})


def _mailbox(name: str, one: Listed, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "name": name,
        "delimiter": one.delimiter,
        "special_use": next((use for use in _SPECIAL if use in one.attributes), None),
        "selectable": selectable(one),
        **{field: numbers.get(field) for field in ("messages", "unseen", "uidvalidity", "uidnext")},
    }


@connector.stream("messages")
def messages(stream: StreamRun) -> None:
    """Collect the messages that are new or changed, and their attachments where the run wants them."""
    with ExitStack() as stack:
        wanted = stream.run.wants("attachments")
        lane = stack.enter_context(stream.details("attachments")) if wanted else None
        _walk(stream, Walk(stream, lane, account_of(stream.run), bounds_of(stream.run)))


@connector.stream("attachments")
def attachments(stream: StreamRun) -> None:
    """Collect the attachments of every message, or those that are asked for, where the run wants no messages."""
    if not stream.run.wants("messages"):
        lane = stream.alone("messages")
        _walk(stream, Walk(stream, lane, account_of(stream.run), bounds_of(stream.run)))


def _walk(stream: StreamRun, walk: Walk) -> None:
    listed = {name: one.raw for name, one in listed_of(stream.run).items() if selectable(one)}
    with told():
        if stream.resources is None:
            excluded = set(stream.run.options.get("exclude", ()))
            walk.all({name: raw for name, raw in listed.items() if name not in excluded}, walk.unknown(listed))
        for (name, validity), uids in _asked(stream.resources or ()).items():
            if name in listed:
                walk.only(name, listed[name], validity, uids)


def _asked(resources: Any) -> dict[tuple[str, int], set[int]]:
    """Return the UIDs by mailbox and UIDVALIDITY of keys that a run asks for."""
    found: dict[tuple[str, int], set[int]] = defaultdict(set)
    for resource in resources:
        try:
            name, validity, uid = json.loads(resource)[:3]
            found[name, int(validity)].add(int(uid))
        except (ValueError, TypeError):
            continue
    return found


def bounds_of(run: RunContext) -> Bounds:
    """Read the bounds that the owner set."""
    return Bounds(int(run.options.get("text_characters", 100_000)), int(run.options.get("messages_per_run", 20_000)))


if __name__ == "__main__":
    connector.run()
