"""A secret shows itself through one door only."""

import copy
import json
import logging
import pickle
import pprint
import traceback

import msgspec
import pytest

from headwater.secret import Secret

SENTINEL = "s3ntinel-tr3asure"


@pytest.mark.parametrize(
    "show", [repr, str, ascii, "{}".format, "{:>40}".format, pprint.pformat, lambda s: f"{s!r:.99}"]
)
@pytest.mark.parametrize("material", [SENTINEL, SENTINEL.encode()])
def test_a_secret_prints_as_a_secret(show, material):
    shown = show([Secret(material)]) if show is pprint.pformat else show(Secret(material))
    assert "<secret>" in shown
    assert SENTINEL not in shown


@pytest.mark.parametrize(
    "copier", [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, msgspec.json.encode, bytes, vars]
)
def test_a_secret_is_not_written_anywhere(copier):
    with pytest.raises(TypeError) as refused:
        copier(Secret(SENTINEL))
    assert SENTINEL not in "".join(traceback.format_exception(refused.value))


def test_a_secret_compares_with_secrets_only_and_has_no_fingerprint():
    assert Secret(SENTINEL) == Secret(SENTINEL.encode())
    assert Secret(SENTINEL) != Secret("another")
    assert Secret(SENTINEL) != SENTINEL
    with pytest.raises(TypeError):
        hash(Secret(SENTINEL))


def test_what_went_in_comes_out_of_the_one_door():
    assert Secret(SENTINEL).reveal() == SENTINEL.encode()
    assert Secret("köder").text() == "köder"
    assert len(Secret("köder")) == 6


def test_text_that_is_none_is_refused_without_its_bytes():
    with pytest.raises(ValueError, match="not UTF-8") as refused:
        Secret(SENTINEL.encode() + b"\xff").text()
    assert refused.value.__context__ is None
    assert SENTINEL not in "".join(
        traceback.TracebackException.from_exception(refused.value, capture_locals=True).format()
    )


def test_a_log_and_a_failed_assertion_do_not_show_it(caplog):
    logging.getLogger("headwater").error("held %s and %r", Secret(SENTINEL), Secret(SENTINEL))
    assert SENTINEL not in caplog.text
