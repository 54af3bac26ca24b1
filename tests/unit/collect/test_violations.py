"""A violation names its rule and its line, and repeats nothing of what stood there."""

import pytest
from vectors.notation import done_line

from headwater.collect.effects import Abort, Ask
from headwater.collect.verdict import Exit
from headwater.wire.messages import InteractionResponse

SECRET = "correct-horse"
GOOD = b'{"type":"PROGRESS","message":"x"}'
QUESTION = b'{"type":"INTERACTION","request_id":"q1","kind":"otp","message":"The code?"}'


def broken(play, *lines: bytes):
    """Feed lines that end the run, and return the session and its verdict."""
    session = play.begin("FLAT")
    effects = [session.receive(line) for line in lines]
    assert isinstance(effects[-1], Abort)
    verdict, _ = session.end(Exit(0))
    assert verdict.message == effects[-1].message
    return session, verdict


@pytest.mark.parametrize("before", [0, 1, 1_200])
def test_a_violation_says_on_which_line_it_stood(play, before):
    """Lines are counted from one, as an editor would count them in a copy of the connector's stdout."""
    session, verdict = broken(play, *[GOOD] * before, b"junk")
    assert verdict.message == f"A line is not JSON. See line {before + 1:,} of its output."
    assert session.facts.violation_line == before + 1


@pytest.mark.clause("CP-100")
def test_blank_lines_are_counted_and_mean_nothing(play):
    """They are no messages: not before one, not while a question is open, and not after DONE."""
    session = play.begin("FLAT")
    assert [session.receive(line) for line in (b"", GOOD, b"", b"")][2:] == [None, None]
    assert isinstance(session.receive(QUESTION), Ask)
    assert session.receive(b"") is None
    session.answered(InteractionResponse("q1", "cancelled"))
    (done,), _ = done_line("ok", 0)
    session.receive(done)
    assert session.receive(b"") is None
    assert session.end(Exit(0))[0].status == "succeeded"
    assert session.facts.violation_line is None
    assert session.receive(GOOD).message == "The connector wrote after DONE. See line 9 of its output."


def test_a_line_that_is_too_long_has_its_number_too(play):
    """It was never read, and is counted all the same."""
    session = play.begin("FLAT")
    session.receive(GOOD)
    assert session.receive_overlong().rule == "line_too_long"
    assert session.facts.violation_line == 2
    assert session.is_over


def test_the_first_violation_stands(play):
    """What a broken connector goes on to say is not looked at."""
    session, _ = broken(play, GOOD, b"junk")
    assert session.receive(b"more junk") is None
    assert session.facts.violation_line == 2


@pytest.mark.parametrize(
    "line",
    [
        "{0}", "{{{0}", '"{0}"', '{{"{0}":1}}', '{{"type":"{0}"}}', '{{"type":"STATE","stream":"{0}","cursor":{{}}}}',
        '{{"type":"STATE","stream":"alpha","cursor":"{0}"}}', '{{"type":"STATE","stream":"alpha","{0}":{{}}}}',
        '{{"type":"STATE","stream":"alpha","cursor":{{"{0}":1,"{0}":2}}}}', '{{"type":"DONE","status":"{0}"}}',
        '{{"type":"RECORD","stream":"alpha","key":"k","data":{{}},"emitted_at":"{0}"}}',
        '{{"type":"RECORD","stream":"alpha","key":{{"{0}":1}},"data":{{}},"emitted_at":"x"}}',
        '{{"type":"RECORD","stream":"alpha","key":"k","data":{{"{0}":NaN}},"emitted_at":"x"}}',
        '{{"type":"START","scope":"{0}"}}', '{{"type":"DETAIL_GAP","stream":"{0}"}}',
        '{{"type":"PROGRESS","message":["{0}"]}}',
        '{{"type":"SKIP_RESULT","recovery_hint":{{"action":"{0}","retryable":true}}}}',
        '{{"type":"INTERACTION","request_id":"r","kind":"{0}","message":"m"}}',
    ],
)  # fmt: skip
def test_a_violation_repeats_nothing_of_the_line(play, line):
    """A line may hold anybody's password: the message is made of the rule's own words."""
    session, verdict = broken(play, line.format(SECRET).encode())
    assert SECRET not in f"{verdict} {session.facts}"
