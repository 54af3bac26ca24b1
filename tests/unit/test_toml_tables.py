"""Editing one table of a TOML text: what it says, and every byte around it."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.toml_tables import with_members, without_table

TABLE = ("instances", "a/b", "schedule")
HEAD = 'format = "headwater-collect/1" # mine\n'
SET = '[instances."a/b".schedule]\nevery = "6h"\n'
# A text, and the same with `every = "6h"` in its schedule.
TEXTS = {
    "empty": (HEAD, f"{HEAD}\n{SET}"),
    "no end of line": (HEAD.rstrip("\n"), f"{HEAD}\n{SET}"),
    "before a comment of the next": (
        f'{HEAD}\n[instances."a/b".options]\nx   =  1\n\n# about c\n[instances."c/d"]\n',
        f'{HEAD}\n[instances."a/b".options]\nx   =  1\n\n{SET}\n# about c\n[instances."c/d"]\n',
    ),
    "after the last of its tables": (
        f'{HEAD}[instances."a/b"]\n[instances."c/d"]\n[instances."a/b".options]\nx = 1\n[other]\n',
        f'{HEAD}[instances."a/b"]\n[instances."c/d"]\n[instances."a/b".options]\nx = 1\n\n{SET}[other]\n',
    ),
    "in the place of another value": (
        f'{HEAD}[ instances . \'a/b\' . "schedule" ] # when\n# often\nevery="1h"   # is enough\n\n# end\n',
        f'{HEAD}[ instances . \'a/b\' . "schedule" ] # when\n# often\nevery="6h"   # is enough\n\n# end\n',
    ),
    "beside what stays": (
        f'{HEAD}[instances."a/b".schedule]\njitter = "5m"\n\n[instances."c/d"]\n',
        f'{HEAD}[instances."a/b".schedule]\njitter = "5m"\nevery = "6h"\n\n[instances."c/d"]\n',
    ),
    "not in a text that looks like it": (
        f"{HEAD}[instances.\"c/d\".options]\nx = '''\n[no header]\n'''\n",
        f"{HEAD}[instances.\"c/d\".options]\nx = '''\n[no header]\n'''\n\n{SET}",
    ),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("before", "after"), TEXTS.values(), ids=TEXTS)
def test_a_member_is_set_and_every_other_byte_stays(before, after, line_end):
    """The value stands where it belongs, in the line ends of the file."""
    before, after = before.replace("\n", line_end), after.replace("\n", line_end)
    if line_end not in before:
        after = after.replace(line_end, "\n")
    assert with_members(before, TABLE, {"every": "6h"}) == after


def test_what_is_already_there_is_not_written_anew():
    """Not a byte changes where nothing is to change."""
    text = f"{HEAD}[instances.\"a/b\".schedule]\nevery   = '6h' # so\n"
    assert with_members(text, TABLE, {"every": "6h", "jitter": None}) == text


def test_a_member_is_taken_out_with_its_line():
    """Its neighbours stay."""
    text = f'{HEAD}[instances."a/b".schedule]\nevery = "6h"\npaused = true\njitter = "5m" # a bit\n'
    assert with_members(text, TABLE, {"paused": None}) == text.replace("paused = true\n", "")


@pytest.mark.parametrize(
    "text",
    [
        f'{HEAD}[instances]\n"a/b" = {{options = {{x = 1}}}}\n',
        f'{HEAD}[instances."a/b"]\nschedule = {{cron = "0 7 * * *"}}\n',
        f'{HEAD}instances."a/b".schedule.cron = "0 7 * * *"\n',
        f"{HEAD}[instances]\n\"a/b\" = 'no table'\n",
        f"{HEAD}[x]\ny = '''\n[instances.\"a/b\".schedule]\n'''\n",
    ],
)
def test_what_is_written_otherwise_is_refused(text):
    """A table in one line, in dotted keys, or only in the words of a value: never guessed at."""
    with pytest.raises(ValueError, match=r"\w"):
        with_members(text, TABLE, {"every": "6h"})


def test_a_table_is_taken_out_with_its_empty_line():
    """The tables before and after it stay as they are."""
    before = f'{HEAD}[instances."a/b".options]\nx = 1\n'
    after = '\n# about c\n[instances."c/d"]\n'
    assert without_table(f"{before}\n{SET}{after}", TABLE) == before + after
    assert without_table(before + after, TABLE) == before + after


def test_an_instance_outlives_the_only_table_that_names_it():
    """Its name stays, without members."""
    text = f"{HEAD}{SET}# end\n"
    assert without_table(text, TABLE) == f'{HEAD}\n[instances."a/b"]\n# end\n'


names = st.sampled_from(["a/b", "c/d", "e/f"])
tables = st.lists(st.tuples(names, st.sampled_from(["options", "schedule"])), unique=True, max_size=6)
fillers = st.sampled_from(["", "# words\n", "\n", "\n# words\n\n"])
values = st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.lists(st.text(max_size=3), max_size=2))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(tables, fillers, fillers)), names, st.dictionaries(st.sampled_from("pqr"), values))
def test_an_edit_says_what_it_should_and_can_be_taken_back(parts, name, members):
    """Of whatever file: the edited text has the members, every line of the text before, and nothing else."""
    seen: set[tuple[str, str]] = set()
    text = HEAD
    for found, before, within in parts:
        for table in [item for item in found if item not in seen]:
            seen.add(table)
            text += f'{before}[instances."{table[0]}".{table[1]}]\n{within}x = 1\n{before}'
    edited = with_members(text, ("instances", name, "schedule"), members)
    assert tomllib.loads(edited)["instances"][name]["schedule"].items() >= members.items()
    lines = iter(edited.splitlines())
    assert all(line in lines for line in text.splitlines())
    if (name, "schedule") not in seen and (name, "options") in seen:
        assert without_table(edited, ("instances", name, "schedule")) == text
