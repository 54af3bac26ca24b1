"""Where the configuration and the state are: by flag, by variable, or below HOME; and nowhere else."""

import os
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError
from headwater.settings import resolve


def refused(*arguments) -> HeadwaterError:
    """Return how paths are refused."""
    with pytest.raises(HeadwaterError) as caught:
        resolve(*arguments)
    assert (caught.value.code, caught.value.exit_status) == ("invalid_configuration", 2)
    assert caught.value.data == {"configuration_rule": "config_path_unresolved"}
    return caught.value


@pytest.mark.clause("CLI-051", "CLI-054", "CLI-069")
def test_a_flag_counts_before_a_variable_and_that_before_home(tmp_path):
    """The first that is there is taken."""
    variables = {"HOME": "/home/ada", "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    assert resolve("/a/c.toml", "/a/s", variables) == (Path("/a/c.toml"), Path("/a/s"))
    assert resolve(None, None, variables) == (tmp_path / "headwater" / "config.toml", tmp_path / "headwater")
    home = resolve(None, None, {"HOME": "/home/ada"})
    assert home.config_path == Path("/home/ada/.config/headwater/config.toml")
    assert home.state_dir == Path("/home/ada/.local/state/headwater")


@pytest.mark.clause("CLI-055")
def test_with_both_flags_no_variable_is_read(monkeypatch):
    """Not even looked at."""

    class Unread(dict):
        def get(self, name, default=None):
            raise AssertionError(name)

    assert resolve("/c", "/s", Unread()) == (Path("/c"), Path("/s"))


@pytest.mark.clause("CLI-052")
def test_a_variable_counts_only_where_its_folder_is_the_users_own(tmp_path, monkeypatch):
    """A relative one and one of somebody else's are passed over; one that is not there yet is to be made."""
    home = Path("/home/ada/.config/headwater/config.toml")
    for value in ("", "rel", "./rel", "~/x"):
        assert resolve(None, "/s", {"HOME": "/home/ada", "XDG_CONFIG_HOME": value}).config_path == home
    new = tmp_path / "new"
    assert resolve(None, "/s", {"HOME": "/home/ada", "XDG_CONFIG_HOME": str(new)}).config_path.is_relative_to(new)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert resolve(None, "/s", {"HOME": "/home/ada", "XDG_CONFIG_HOME": str(tmp_path)}).config_path == home


@pytest.mark.clause("CLI-056")
@pytest.mark.parametrize("variables", [{}, {"HOME": ""}, {"HOME": "rel"}, {"XDG_CONFIG_HOME": "rel", "HOME": "."}])
def test_where_nothing_says_a_path_it_is_unresolved(variables):
    """Nothing is looked for in the folder one stands in."""
    refused(None, "/s", variables)
    refused("/c", None, variables)


@pytest.mark.clause("CLI-056", "CLI-062", "CLI-061")
@pytest.mark.parametrize("path", ["rel.toml", "./c.toml", "~/c.toml", "/" + "x" * 4096, "/a\0b", "/" + "é" * 2048])
def test_a_path_that_cannot_be_one_is_refused(path):
    """Relative, or longer than 4 KiB; it is not repeated."""
    for arguments in ((path, "/s"), ("/c", path)):
        assert path not in refused(*arguments, {}).message
    assert resolve("/" + "x" * 4095, "/s", {}).config_path.name == "x" * 4095
