"""The small parts: sets of UIDs, and answers in the shapes that servers give them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.connectors.imap.responses import Fetched, Refused, fetched, listed, named, quoted, status
from headwater.connectors.imap.uids import Uids

NUMBERS = st.sets(st.integers(1, 60))


@given(NUMBERS, NUMBERS, st.permutations(range(1, 61)))
def test_a_set_of_uids_is_a_set(ours: set[int], others: set[int], order: list[int]) -> None:
    """In whatever order they come; its text says the same."""
    uids = Uids.of(uid for uid in order if uid in ours)
    assert list(uids) == sorted(ours)
    assert list(Uids(str(uids))) == sorted(ours)
    assert len(uids) == len(ours)
    assert all((uid in uids) == (uid in ours) for uid in range(62))
    assert set(uids.without(Uids.of(others))) == ours - others
    assert set(uids.among(Uids.of(others))) == ours & others
    assert str(uids.without(())) == str(Uids.of(sorted(ours)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        ("5", "5"),
        ("1,2,3", "1:3"),
        ("9:7,1", "1,7:9"),
        ("1:4294967295,7", "1:4294967295"),
        ("1:3,2:8", "1:8"),
    ],
)
def test_a_sequence_set_is_read_in_any_form(text: str, said: str) -> None:
    """Backwards, overlapping, or as wide as the protocol allows."""
    assert str(Uids(text)) == said


def test_what_is_no_uid_is_in_no_set() -> None:
    """A text that looks like one neither."""
    assert "1" not in Uids("1:5")


def test_an_answer_is_read_whichever_side_of_its_literal_the_rest_stands() -> None:
    """Flags before the body or behind it, a short body in quotes, none at all, and an answer nobody asked for."""
    pieces = [
        (b"1 (UID 5 BODY[] {3}", b"abc"),
        b" FLAGS (\\Seen) RFC822.SIZE 3)",
        b'2 (UID 6 FLAGS () BODY[] "q\\"q")',
        b"3 (FLAGS (\\Deleted))",
        b"4 (UID 7 BODY[HEADER] NIL)",
        (b"5 (UID 8 BODY[HEADER] {1}", b"h"),
        b")",
        None,
    ]
    assert list(fetched(pieces)) == [
        Fetched(5, 3, ("\\Seen",), None, b"abc"),
        Fetched(6, None, (), None, b'q"q'),
        Fetched(7, None, None, None, b""),
        Fetched(8, None, None, None, b"h"),
    ]


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        (b"17-Jul-1996 02:44:25 -0700", "1996-07-17T09:44:25Z"),
        (b" 1-Oct-2024 00:00:00 +0000", "2024-10-01T00:00:00Z"),
        (b"31-Feb-2024 00:00:00 +0000", None),
        (b"01-Jan-0001 00:00:00 +1400", None),
        (b"yesterday", None),
    ],
)
def test_an_internal_date_is_a_time_or_none(date: bytes, moment: str | None) -> None:
    """One that no calendar has is none."""
    (row,) = fetched([b'1 (UID 1 INTERNALDATE "' + date + b'")'])
    assert row.received_at == moment


def test_a_mailbox_is_read_from_each_form_of_its_name() -> None:
    """An atom, a quoted string, a literal; a line that is no mailbox is passed over."""
    rows = list(
        listed(
            [
                b"(\\HasNoChildren \\Sent) NIL Sent",
                b'() "\\\\" "a \\"b\\" c"',
                (b'(\\Noselect) "/" {3}', b'x"y'),
                b"nonsense",
                None,
            ]
        )
    )
    assert [(row.raw, row.delimiter) for row in rows] == [(b"Sent", None), (b'a "b" c', "\\"), (b'x"y', "/")]
    assert rows[0].attributes == {"hasnochildren", "sent"}


def test_a_status_is_read_behind_any_name() -> None:
    """Numbers by name, whatever the mailbox is called."""
    assert status([b'"x (MESSAGES 9) y" (MESSAGES 1 UIDNEXT 2)']) == {"messages": 1, "uidnext": 2}
    assert status([(b"{3}", b"a)b"), b" (UNSEEN 3)"]) == {"unseen": 3}
    assert status([None]) == {}


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"INBOX", "INBOX"),
        (b"&AOQ-", "ä"),
        (b"&-", "&"),
        (b"~peter/mail/&U,BTFw-/&ZeVnLIqe-", "~peter/mail/台北/日本語"),
        (b"&2D3cCQ-", "\U0001f409"),
        (b"&2D0-", "&2D0-"),
        (b"&A-", "&A-"),
        (b"open &AOQ", "open &AOQ"),
        (b"caf\xe9", "caf\\xe9"),
        ("café".encode(), "café"),
        (b"a\tb&AAA-", "a\ufffdb\ufffd"),
    ],
)
def test_a_name_is_decoded_or_left_as_it_is(raw: bytes, name: str) -> None:
    """The examples of RFC 3501, a pair of surrogates, half of one, and what is no modified UTF-7."""
    assert named(raw) == name


@pytest.mark.parametrize("raw", [b"a\r\nb LOGOUT", b"a\0b", b"\n"])
def test_a_name_that_would_be_two_commands_is_not_sent(raw: bytes) -> None:
    """It may come as a literal, and goes nowhere."""
    with pytest.raises(Refused):
        quoted(raw)
