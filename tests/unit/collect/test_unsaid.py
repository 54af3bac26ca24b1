"""What the owner answered is taken out of what a connector says, also as a log of its requests has it."""

from base64 import b64encode

import pytest

from headwater.collect.unsaid import Unsaid
from headwater.wire.messages import Interaction

PASSWORD = "sentinel-4711"


@pytest.fixture
def unsaid():
    """An owner who has answered with a user name and a password."""
    made = Unsaid()
    question = Interaction("q", "credentials", "Sign in.")
    made.add(question, {"user": "al", "password": PASSWORD})
    return made


@pytest.mark.clause("CP-711")
@pytest.mark.parametrize("text", [PASSWORD, f"al:{PASSWORD}"])
def test_an_answer_is_not_repeated_in_base64_either(unsaid, text):
    coded = b64encode(text.encode()).decode()
    for said in (text, f"Authorization: Basic {coded}", coded.rstrip("=")):
        scrubbed = unsaid.scrub(f"send: {said} end")
        assert "[removed]" in scrubbed
        assert PASSWORD not in scrubbed
        assert coded.rstrip("=") not in scrubbed


def test_texts_that_are_short_are_left_alone(unsaid):
    assert unsaid.scrub("also al fresco") == "also al fresco"


def test_many_answers_are_not_paired():
    """The work that each text makes stays bounded."""
    made = Unsaid()
    question = Interaction("q", "credentials", "Sign in.")
    made.add(question, {f"field{number}": f"text-{number}" for number in range(100)})
    assert len(made._texts) <= 200
