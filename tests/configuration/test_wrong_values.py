"""Whatever stands where something else belongs: the file is refused, and nothing breaks."""

import tomllib
from copy import deepcopy
from datetime import date

import pytest
import tomlkit
from configuration.documents import DIGEST, document, entry
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.configuration.reading import parse
from headwater.errors import HeadwaterError

WHOLE = document(
    f"""secret_service_socket = "/run/user/0/bus"
[approval_clock]
format = "x"
{entry("forge", credential_revision=f'"{DIGEST}"', startup='"automatic"', restart='"never"')}
permissions = {{profiles = ["token"], operations = ["a.b"]}}
[connectors.zendesk]
enabled = true
[connectors.zendesk.instances.support]
endpoint = "https://acme.zendesk.com"
profile = "token"
description = "mine"
alias = "old"
instance_id = "z-1"
permissions = {{profiles = ["token"], operations = []}}
[consumers.tool]
executable = {{path = "/opt/tool", sha256 = "{DIGEST}", args = ["-x"]}}
pass_env = ["LANG"]
permissions = {{connections = ["old"]}}
[custody]
binding = "secret_service"
""",
    head='default_instance = "zendesk/support"\n',
)
KINDS = (1, 1.5, True, "x", date(2026, 11, 30), [], [[]], {}, {"a": 1})
TEXTS = ("", "\x00", "a b", "é/é", "x" * 5000)


def places(value, path=()):
    """Yield the way to everything in a document, tables too."""
    yield path
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in rows:
        yield from places(member, (*path, name))


def changed(path, value) -> bytes:
    """Return the whole document with another value at one place."""
    root = deepcopy(tomllib.loads(WHOLE))
    holder = root
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = value
    return tomlkit.dumps(root).encode()


def outcome(content: bytes) -> str:
    """Return whether a document is read or refused; anything else is raised."""
    try:
        parse(content)
    except HeadwaterError as error:
        return "refused" if error.code == "invalid_configuration" else error.code
    return "read"


def held(path):
    """Return what stands at a place."""
    value = tomllib.loads(WHOLE)
    for name in path:
        value = value[name]
    return value


PLACES = [path for path in places(tomllib.loads(WHOLE)) if path]


@pytest.mark.clause("CLI-150", "CLI-901")
@pytest.mark.parametrize("path", PLACES, ids=str)
def test_a_value_of_another_kind_is_refused_wherever_it_stands(path):
    """In the place of each value and each table, one after the other."""
    assert outcome(WHOLE.encode()) == "read"
    ends = {repr(value): outcome(changed(path, value)) for value in KINDS if type(value) is not type(held(path))}
    clock = path[0] == "approval_clock" and len(path) > 1  # which is left as it stands
    assert clock or set(ends.values()) == {"refused"}, ends
    for text in TEXTS:
        outcome(changed(path, text))


@pytest.mark.clause("CLI-150")
@pytest.mark.parametrize("path", [path for path in PLACES if isinstance(held(path), dict)], ids=str)
def test_a_key_too_many_is_refused_in_every_table(path):
    """Whatever it holds."""
    assert path[0] == "approval_clock" or outcome(changed((*path, "unknown"), "x")) == "refused"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_text_that_was_damaged_is_read_or_refused(data):
    """Bytes that are taken out, put in or changed: nothing but a refusal comes of it."""
    content = bytearray(WHOLE.encode())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 12))
        content[place : place + length] = data.draw(st.binary(max_size=6))
    outcome(bytes(content))
