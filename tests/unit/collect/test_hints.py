"""What a failure asks of the owner: the hint where there is one, else the same policy for everybody."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.collect.hints import SENTENCES, action_of
from headwater.wire.messages import RecoveryAction


def test_there_is_a_sentence_for_every_action():
    """And for nothing else."""
    assert set(SENTENCES) == set(get_args(RecoveryAction))


@pytest.mark.clause("CP-830")
@pytest.mark.parametrize("action", SENTENCES)
@pytest.mark.parametrize("retryable", [True, False])
def test_the_hint_decides_whatever_the_rest_suggests(action, retryable):
    """Neither code nor message nor flag overrules it."""
    error = {"hint": action, "retryable": retryable, "code": "auth_failed", "message": "bad password"}
    assert action_of(error) == action


@pytest.mark.clause("CP-833")
@pytest.mark.parametrize(("retryable", "action"), [(True, "retry_by_runtime"), (False, "unknown"), (None, "unknown")])
def test_without_a_hint_only_what_can_be_retried_is_retried(retryable, action):
    """That is the whole policy."""
    assert action_of({"message": "It failed.", "retryable": retryable}) == action
    assert action_of({"message": "It failed.", "retryable": retryable, "hint": None}) == action


@pytest.mark.clause("CP-821", "CP-834")
@given(code=st.sampled_from([*SENTENCES, "zzz_1"]), message=st.sampled_from(["401 unauthorized", *SENTENCES]))
def test_no_code_and_no_text_asks_the_owner_for_anything(code, message):
    """Words of a connector are shown, and not obeyed."""
    assert action_of({"message": message, "retryable": False, "code": code}) == "unknown"
