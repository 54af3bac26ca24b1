"""The instances of `collect.toml`: private, whole, and edited without touching another byte."""

import os

import pytest
from msgspec.structs import replace

from headwater.catalog.instances import Instance, Instances, valid_name
from headwater.errors import HeadwaterError


def test_an_instance_is_read_back_as_it_was_added(tmp_path):
    """What was remembered comes back, options and all."""
    instances = Instances(tmp_path / "collect.toml")
    instances.add(Instance("git/here", {"path": "/x", "depth": 3}, ("commits",)))
    assert instances.all() == {"git/here": Instance("git/here", {"path": "/x", "depth": 3}, ("commits",))}


def test_adding_keeps_every_other_byte(tmp_path):
    """Comments and order belong to the person who wrote them."""
    path = tmp_path / "collect.toml"
    before = (
        'format = "headwater-collect/1" # mine\n\n# keep me\n[instances."a/b"]\n[instances."a/b".options]\nx   =  1\n'
    )
    path.write_text(before)
    path.chmod(0o600)
    Instances(path).add(Instance("c/d", {"y": 2}))
    assert path.read_text().startswith(before)
    assert set(Instances(path).all()) == {"a/b", "c/d"}


def test_what_was_set_again_changes_its_line_and_no_other(tmp_path):
    """A new value stands in the place of the old one; the schedule and the words around it stay."""
    path = tmp_path / "collect.toml"
    text = """format = "headwater-collect/1"
[instances."a/b".options]  # hand-made
x   =  1  # one
y = [
    "p",
    "q",
]

[instances."a/b".schedule]
every = "6h"

# the others
[instances."c/d".options]
"""
    path.write_text(text)
    path.chmod(0o600)
    instances = Instances(path)
    instances.add(replace(instances.find("a/b"), options={"x": 1, "y": ["p", "q"], "z": 3}))
    assert path.read_text() == text.replace("]\n\n[", "]\nz = 3\n\n[")
    instances.add(replace(instances.find("a/b"), options={"x": 2, "y": ["p", "q"], "z": 3}))
    assert path.read_text() == text.replace("]\n\n[", "]\nz = 3\n\n[").replace("x   =  1  #", "x   =  2  #")
    assert instances.find("a/b").schedule == {"every": "6h"}


def test_a_schedule_is_set_and_removed_without_a_trace(tmp_path):
    """Setting one and taking it away leaves the bytes that were there."""
    path = tmp_path / "collect.toml"
    instances = Instances(path)
    instances.add(Instance("a/b", {"x": 1}))
    instances.add(Instance("c/d", {"y": 2}))
    before = path.read_bytes()
    instances.set_schedule("a/b", {"every": "6h", "jitter": "5m"})
    assert instances.find("a/b") == Instance("a/b", {"x": 1}, schedule={"every": "6h", "jitter": "5m"})
    instances.set_schedule("a/b", {"every": "1h"})
    assert instances.find("a/b").schedule == {"every": "1h"}
    instances.remove_schedule("a/b")
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["no/such", "a"])
def test_a_schedule_is_of_an_instance_that_there_is(tmp_path, name):
    """Nothing is made up for a name that was mistyped."""
    instances = Instances(tmp_path / "collect.toml")
    with pytest.raises(HeadwaterError):
        instances.set_schedule(name, {"every": "6h"})
    assert not (tmp_path / "collect.toml").exists()


@pytest.mark.clause("CLI-901")
def test_an_instance_in_one_line_is_left_to_its_writer(tmp_path):
    """What cannot be edited in place is refused, and not written anew."""
    path = tmp_path / "collect.toml"
    text = 'format = "headwater-collect/1"\n[instances]\n"a/b" = {options = {x = 1}} # mine\n'
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(HeadwaterError) as raised:
        Instances(path).set_schedule("a/b", {"every": "6h"})
    assert raised.value.code == "invalid_configuration"
    assert path.read_text() == text
    Instances(path).add(Instance("c/d"))
    assert path.read_text().startswith(text)


def test_the_file_is_made_for_its_owner_only(tmp_path):
    """Nobody else on the machine reads what is collected from where."""
    path = tmp_path / "collect.toml"
    Instances(path).add(Instance("a/b"))
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.clause("CLI-058")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    """Loose permissions are a refusal with its rule, and not a warning."""
    path = tmp_path / "collect.toml"
    Instances(path).add(Instance("a/b"))
    path.chmod(mode)
    with pytest.raises(HeadwaterError) as raised:
        Instances(path).all()
    assert raised.value.data == {"configuration_rule": "config_not_private"}


@pytest.mark.clause("CLI-901")
@pytest.mark.parametrize(
    "text",
    [
        "not toml [",
        'format = "other/1"\n',
        'format = "headwater-collect/1"\n[instances."no-slash"]\n',
        'format = "headwater-collect/1"\n[instances."a/b"]\nunknown = 1\n',
        'format = "headwater-collect/1"\n[instances."a/b"]\nstreams = "commits"\n',
        'format = "headwater-collect/1"\n[instances."a/b"]\nschedule = "6h"\n',
        'format = "headwater-collect/1"\ninstances = 3\n',
    ],
)
def test_a_file_that_does_not_fit_is_refused_and_left_alone(tmp_path, text):
    """Nothing is guessed, and an edit over a broken file does not destroy it."""
    path = tmp_path / "collect.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(HeadwaterError) as raised:
        Instances(path).add(Instance("c/d"))
    assert raised.value.code == "invalid_configuration"
    assert path.read_text() == text


def test_a_fifo_is_refused_and_not_waited_for(tmp_path):
    """A file that would block is not opened."""
    path = tmp_path / "collect.toml"
    os.mkfifo(path, 0o600)
    with pytest.raises(HeadwaterError):
        Instances(path).all()


@pytest.mark.parametrize("name", ["git", "git/", "/here", "a/b/c", "a b/c", "../x", "a/é"])
def test_names_have_a_connector_and_an_instance(name):
    """A name is two words of safe characters."""
    with pytest.raises(HeadwaterError):
        valid_name(name)


@pytest.mark.clause("CLI-528")
def test_a_release_is_named_and_taken_away_without_a_trace(tmp_path):
    """The key is one line of the instance's own table; every other byte stays."""
    path = tmp_path / "collect.toml"
    text = 'format = "headwater-collect/1"  # mine\n\n[instances."a/b"]\nfolder = "/x"  # here\n\n# keep me\n'
    path.write_text(text)
    path.chmod(0o600)
    instances = Instances(path)
    instances.opt_in("a/b", "0" * 64)
    assert path.read_text() == text.replace("# here\n", f'# here\nrelease = "{"0" * 64}"\n')
    instances.opt_in("a/b", "1" * 64)
    assert instances.find("a/b").release == "1" * 64
    instances.opt_out("a/b", forget=False)
    assert (path.read_text(), path.stat().st_mode & 0o777) == (text, 0o600)


@pytest.mark.clause("CLI-528")
def test_what_is_set_up_of_an_instance_leaves_its_release_alone(tmp_path):
    """Options and a schedule come and go beside the key."""
    instances = Instances(tmp_path / "collect.toml")
    instances.opt_in("a/b", "0" * 64)
    instances.add(replace(instances.find("a/b"), options={"x": 1}))
    instances.set_schedule("a/b", {"every": "6h"})
    instances.remove_schedule("a/b")
    assert instances.find("a/b").release == "0" * 64
    instances.opt_out("a/b", forget=False)
    assert instances.find("a/b") == Instance("a/b", {"x": 1})


@pytest.mark.clause("CLI-528")
def test_an_instance_that_is_written_in_one_line_is_opted_in_by_its_person_alone(tmp_path):
    path = tmp_path / "collect.toml"
    text = 'format = "headwater-collect/1"\ninstances = { "a/b" = { folder = "/x" } }\n'
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(HeadwaterError) as refused:
        Instances(path).opt_in("a/b", "0" * 64)
    assert (refused.value.code, path.read_text()) == ("invalid_configuration", text)
