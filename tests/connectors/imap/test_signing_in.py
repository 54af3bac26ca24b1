"""Signing in to a real Dovecot, and all the ways in which that fails: each is a sentence, and no secret in it."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from connectors.imap.people import CONNECTOR, Person, deleted, message, subjects

from headwater.sdk.testing import Transcript, collect

ANSWER = {"username": "ada", "password": "correct-horse-battery-staple"}


def error(transcript: Transcript) -> tuple[bool, str | None, str]:
    """Return what DONE says of a failure; nothing may have been claimed before it."""
    assert transcript.done["status"] == "failed"
    assert transcript.state == {}
    told = transcript.done["error"]
    return told["retryable"], told.get("recovery_hint"), told["message"]


def test_a_wrong_password_needs_new_credentials(person: Person) -> None:
    """It is not retryable, and the password is not repeated."""
    transcript = person.collect(answers=[{"username": person.name, "password": "wrong-wrong-wrong"}])
    assert error(transcript)[:2] == (False, "refresh_credentials")
    assert "wrong-wrong-wrong" not in str(transcript.messages) + transcript.stderr


def test_a_question_that_is_declined_ends_the_run(person: Person) -> None:
    """Nobody answers: the run fails, and says so."""
    assert error(person.collect(answers=[]))[1] in {"manual_action_required", None}


@pytest.mark.parametrize("answer", [{}, {"username": "a"}, {"username": "a\0b", "password": "x"}, {"username": 7}])
def test_an_answer_that_is_none_is_not_sent(person: Person, answer: dict[str, Any]) -> None:
    """No line of the protocol is made of it."""
    assert error(person.collect(answers=[answer]))[:2] == (False, "refresh_credentials")


def test_a_certificate_of_an_unknown_authority_is_not_trusted(person: Person) -> None:
    """Without the option `ca` the system's authorities count."""
    options = {"host": "127.0.0.1", "port": person.server.tls_port}
    retryable, hint, text = error(collect(CONNECTOR, options=options, answers=[person.answer]))
    assert (retryable, hint) == (False, "manual_action_required")
    assert "certificate is not trusted" in text


def test_a_certificate_of_another_host_is_not_trusted(person: Person) -> None:
    """The name counts, not the authority alone."""
    assert "certificate is not trusted" in error(person.collect(options={"host": "localhost"}))[2]


def test_a_broken_certificate_in_the_options_is_told(person: Person) -> None:
    """The option is named."""
    assert "`ca`" in error(person.collect(options={"ca": "-----BEGIN CERTIFICATE-----\nnone\n"}))[2]


def test_starttls_is_tls(person: Person) -> None:
    """The plain port, made safe before the password is sent; the same certificate counts."""
    person.put(message("Over STARTTLS"))
    options = {"port": person.server.port, "security": "starttls"}
    assert subjects(person.succeed(options=options)) == ["Over STARTTLS"]
    assert "certificate is not trusted" in error(person.collect(options={**options, "host": "localhost"}))[2]


def test_without_tls_only_where_it_is_said(plain_person: Person) -> None:
    """`security` is `none`: the owner said so."""
    plain_person.put(message("In the open"))
    options = {"port": plain_person.server.port, "security": "none"}
    assert subjects(plain_person.succeed(options=options)) == ["In the open"]


def test_nobody_listens(person: Person) -> None:
    """It may be there later."""
    assert error(person.collect(options={"port": 9}))[:2] == (True, "retry_by_runtime")


@contextmanager
def speaking(*lines: bytes) -> Iterator[int]:
    """Answer each line of a client with the next of ours; `%t` stands for its tag."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            with suppress(OSError), link, link.makefile("rb") as heard:
                link.sendall(b"* OK ready\r\n")
                for line in lines:
                    tag = heard.readline().split(b" ")[0]
                    link.sendall(line.replace(b"%t", tag))
                heard.readline()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(10)


HELLO = b"* CAPABILITY IMAP4rev1\r\n%t OK .\r\n"
LISTED = (HELLO, b"%t OK .\r\n", HELLO, b'* LIST () "/" INBOX\r\n%t OK .\r\n')
STATUS = b"* STATUS INBOX (MESSAGES 1 UIDNEXT 2 UIDVALIDITY 1)\r\n%t OK .\r\n"
EXAMINED = b"* 1 EXISTS\r\n* OK [UIDVALIDITY 1] .\r\n* OK [UIDNEXT 2] .\r\n%t OK [READ-ONLY] .\r\n"
ROW = b"* 1 FETCH (UID 1 RFC822.SIZE 9 FLAGS ())\r\n%t OK .\r\n"


@pytest.mark.parametrize(
    ("lines", "hint"),
    [
        pytest.param([HELLO, b"%t NO .\r\n"], "refresh_credentials", id="NO"),
        pytest.param([b"garbage\r\n"], "retry_by_runtime", id="garbage"),
        pytest.param([HELLO, b"%t OK .\r\n", HELLO, b"* BYE .\r\n"], "retry_by_runtime", id="BYE"),
        pytest.param([HELLO, b"%t OK .\r\n", HELLO, b"%t OK .\r\n"], "unknown", id="no mailbox at all"),
        pytest.param([HELLO, b"%t OK .\r\n", HELLO, b"%t NO .\r\n"], "unknown", id="no list"),
        pytest.param(
            [*LISTED, STATUS, EXAMINED, ROW, b"* 1 FETCH (UID 1 BODY[] {9000000000}\r\n"],
            "retry_by_runtime",
            id="an endless literal",
        ),
        pytest.param([*LISTED, STATUS, EXAMINED, b"* 1 FETCH (" + b"x" * 2_000_000], "unknown", id="an endless line"),
    ],
)
def test_a_server_that_answers_strangely_ends_the_run_in_order(lines: list[bytes], hint: str) -> None:
    """No traceback, no hang, and nothing of what it said."""
    with speaking(*lines) as port:
        options = {"host": "127.0.0.1", "port": port, "security": "none"}
        transcript = collect(CONNECTOR, options=options, answers=[ANSWER], timeout_seconds=30)
    assert transcript.done["status"] == "failed"
    assert transcript.done["error"]["recovery_hint"] == hint
    assert transcript.stderr == ""


def test_a_server_that_wants_tls_gets_no_password_without() -> None:
    """It says LOGINDISABLED; the connector says what to set, and sends nothing."""
    with speaking(HELLO.replace(b"IMAP4rev1", b"IMAP4rev1 LOGINDISABLED")) as port:
        options = {"host": "127.0.0.1", "port": port, "security": "none"}
        retryable, _, text = error(collect(CONNECTOR, options=options, answers=[ANSWER], timeout_seconds=30))
    assert not retryable
    assert "`security`" in text


def test_a_server_without_starttls_gets_no_password() -> None:
    """What would go in the open is not sent."""
    with speaking(HELLO) as port:
        options = {"host": "127.0.0.1", "port": port, "security": "starttls"}
        transcript = collect(CONNECTOR, options=options, answers=[ANSWER], timeout_seconds=30)
    assert error(transcript)[2] == "The server offers no STARTTLS."


def test_a_message_that_the_server_does_not_hand_out_costs_no_other() -> None:
    """NO to a batch: each is asked for alone, and the one that is refused is left for the next run."""
    two = b"* 1 FETCH (UID 1 RFC822.SIZE 9)\r\n* 2 FETCH (UID 2 RFC822.SIZE 9)\r\n%t OK .\r\n"
    examined = EXAMINED.replace(b"* 1 EXISTS", b"* 2 EXISTS").replace(b"UIDNEXT 2", b"UIDNEXT 3")
    given = b'* 2 FETCH (UID 2 RFC822.SIZE 9 FLAGS () BODY[] "Subject: B")\r\n%t OK .\r\n'
    with speaking(*LISTED, STATUS, examined, two, b"%t NO .\r\n", b"%t NO .\r\n", given) as port:
        options = {"host": "127.0.0.1", "port": port, "security": "none"}
        transcript = collect(CONNECTOR, options=options, answers=[ANSWER], timeout_seconds=30)
    assert transcript.done["status"] == "succeeded"
    assert subjects(transcript) == ["B"]
    assert transcript.state["messages"]["mailboxes"]["INBOX"]["now"]["known"] == "2"


def test_a_list_that_is_not_whole_deletes_nothing() -> None:
    """Two messages are there, the server says, and names one: the other is not gone, and the mailbox is skipped."""
    row = b"* %d FETCH (UID %d RFC822.SIZE 9 FLAGS ())\r\n"
    examined = EXAMINED.replace(b"* 1 EXISTS", b"* 2 EXISTS").replace(b"UIDNEXT 2", b"UIDNEXT 3")
    given = b'* %d FETCH (UID %d RFC822.SIZE 9 FLAGS () BODY[] "Subject: B")\r\n'
    one, both = row % (1, 1) + b"%t OK .\r\n", row % (1, 1) + row % (2, 2) + b"%t OK .\r\n"
    bodies = given % (1, 1) + given % (2, 2) + b"%t OK .\r\n"
    options = {"host": "127.0.0.1", "security": "none"}
    with speaking(*LISTED, STATUS, examined, both, bodies) as port:
        first = collect(CONNECTOR, options={**options, "port": port}, answers=[ANSWER], timeout_seconds=30)
    assert len(subjects(first)) == 2
    with speaking(*LISTED, STATUS, examined, one) as port:
        second = collect(CONNECTOR, options={**options, "port": port}, state=first.state, answers=[ANSWER])
    assert deleted(second) == []
    assert [m["reason"] for m in second.messages if m["type"] == "SKIP_RESULT"] == ["unreadable"]
    assert second.state["messages"] == first.state["messages"]


def test_the_test_server_is_what_it_says(person: Person) -> None:
    """Its certificate holds by its own authority: otherwise the refusals above would show nothing."""
    context = ssl.create_default_context(cadata=person.server.ca)
    link = socket.create_connection(("127.0.0.1", person.server.tls_port), 10)
    with context.wrap_socket(link, server_hostname="127.0.0.1") as wrapped:
        assert wrapped.version() in {"TLSv1.2", "TLSv1.3"}
