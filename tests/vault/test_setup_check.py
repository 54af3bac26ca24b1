"""`setup check` says whether credentials can be kept, and how far that is known to last."""

import json
import os
import subprocess
import sys

import pytest

from headwater.configuration.reading import parse
from headwater.errors import HeadwaterError


@pytest.fixture
def place(tmp_path):
    """A folder for a configuration, which only its owner enters."""
    place = tmp_path / "headwater"
    place.mkdir(mode=0o700)
    return place


def checked(place, configuration="", collect=""):
    """Return the result of `setup check` with a config.toml, and what is told of custody by name."""
    for name, text in (("config.toml", configuration), ("collect.toml", collect)):
        if text:
            (place / name).touch(mode=0o600)
            (place / name).write_text(text)
    where = ["--config", str(place / "config.toml"), "--state-dir", str(place / "state"), "--output", "json"]
    words = [sys.executable, "-m", "headwater", *where, "setup", "check"]
    before = sorted(place.rglob("*"))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(place.rglob("*")) == before
    result = json.loads(done.stdout)["result"]
    rows = {row["name"]: row for row in result["prerequisites"]}
    keyring, qualification = rows["keyring"], rows["persistent_custody_qualification"]
    return result["keyring"], keyring["state"], keyring["next_action"], qualification["state"]


def configured(rest):
    return f'format = "connectors-local/5"\nowner_uid = {os.geteuid()}\n{rest}\n'


@pytest.mark.clause("CLI-109", "CLI-411", "CLI-412")
def test_a_keyring_is_told_as_it_is(desktop, place):
    bus = configured(f'secret_service_socket = "{desktop.socket}"')
    assert checked(place, bus) == ("unavailable", "failed", "check_configuration", "unknown")
    assert not desktop.is_running()
    desktop.log_in()
    assert checked(place, bus) == ("available", "ready", "none", "unknown")
    desktop.lock()
    assert checked(place, bus) == ("locked", "failed", "unlock_keyring", "unknown")
    assert desktop.locked() is True


@pytest.mark.clause("CLI-411", "CLI-108")
def test_a_mounted_folder_and_a_sealed_file_are_known_to_last(place):
    mounted = configured(f'[custody]\nbinding = "mounted_secret"\ndirectory = "{place}"')
    assert checked(place, mounted) == ("available", "ready", "none", "ready")
    (place / "config.toml").unlink()
    (place / "key").touch(mode=0o600)
    (place / "key").write_bytes(b"k" * 32)
    table = f'[custody]\nbinding = "sealed_file"\nfile = "{place}/sealed"\n'
    collect = f'format = "headwater-collect/1"\n{table}'
    assert checked(place, collect=f'{collect}key_file = "{place}/key"') == ("available", "ready", "none", "ready")
    assert checked(place, collect=collect)[:3] == ("locked", "failed", "unlock_keyring")
    assert checked(place, collect=f'{collect}key_file = "{place}/none"')[0] == "unavailable"


@pytest.mark.clause("CLI-414")
def test_the_contracts_file_knows_no_sealed_file():
    """It is an extension, named in collect.toml alone: the set of bindings in config.toml stays closed."""
    table = '[custody]\nbinding = "sealed_file"\nfile = "/x"'
    with pytest.raises(HeadwaterError) as refused:
        parse(configured(table).encode())
    assert refused.value.code == "invalid_configuration"


@pytest.mark.clause("CLI-414", "CLI-410")
def test_a_machine_without_a_bus_has_no_keyring(place):
    """Nobody has logged in to a desktop here, as in a container."""
    if os.path.exists(f"/run/user/{os.geteuid()}/bus"):
        pytest.skip("this machine has a session bus")
    assert checked(place) == ("unavailable", "failed", "check_configuration", "unknown")
