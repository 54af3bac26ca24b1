"""A file that is its owner's alone: what is read as one, how it is made, and how it is replaced."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from configuration.documents import UID, document, write

from headwater.configuration.files import create_owned, make_folder, read_owned, replace_owned
from headwater.errors import HeadwaterError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of the owner's."""
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o700)
    return folder


def refused(call, *arguments) -> HeadwaterError:
    """Return how a call is refused; no path and no words of the system are in it."""
    with pytest.raises(HeadwaterError) as caught:
        call(*arguments)
    told = f"{caught.value.message} {caught.value.data}"
    assert not any(word in told for word in ("/", "Errno", "mine"))
    return caught.value


def rule_of(path: Path) -> str:
    """Return the rule by which a file is refused."""
    error = refused(read_owned, path)
    assert error.code == "invalid_configuration"
    return error.data["configuration_rule"]


@pytest.mark.clause("CLI-057", "CLI-061")
def test_where_there_is_none_it_is_missing(place):
    """The file, or the folder that it would be in."""
    assert rule_of(place / "config.toml") == "config_missing"
    assert rule_of(place / "none" / "config.toml") == "config_missing"
    assert refused(read_owned, place / "config.toml").command == "headwater setup init"


@pytest.mark.clause("CLI-058", "CLI-071", "CLI-245", "CLI-061")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o660, 0o777])
def test_a_file_that_others_can_reach_is_refused(place, mode):
    """One bit of the group's or of others' is enough."""
    path = write(place, document())
    assert read_owned(path) == document().encode()
    path.chmod(mode)
    assert rule_of(path) == "config_not_private"


@pytest.mark.clause("CLI-058", "CLI-071")
@pytest.mark.parametrize("mode", [0o750, 0o705, 0o710, 0o701])
def test_its_folder_is_open_to_nobody_else(place, mode):
    """Not even to be entered."""
    path = write(place, document())
    place.chmod(mode)
    assert rule_of(path) == "config_not_private"


@pytest.mark.clause("CLI-071")
@pytest.mark.parametrize(
    ("mode", "fits"), [(0o755, True), (0o711, True), (0o775, False), (0o777, False), (0o1777, True), (0o1775, True)]
)
def test_a_folder_above_is_written_by_nobody_else(place, tmp_path, mode, fits):
    """Others may enter it; they may write there where only an owner can rename what is there, as in /tmp."""
    path = write(place, document())
    tmp_path.chmod(mode)
    if fits:
        assert read_owned(path)
    else:
        assert rule_of(path) == "config_not_private"


@pytest.mark.clause("CLI-058", "CLI-245")
def test_a_file_or_a_folder_of_somebody_else_is_refused(place, monkeypatch):
    """Whoever reads it is not its owner."""
    path = write(place, document())
    monkeypatch.setattr(os, "geteuid", lambda: UID + 1)
    assert rule_of(path) == "config_not_private"


@pytest.mark.skipif(UID != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["config.toml", "."])
def test_each_has_to_be_the_readers_own(place, which):
    """Root's eyes see everything; what is another's is refused all the same."""
    path = write(place, document())
    os.chown(place / which, 12345, 12345)
    assert rule_of(path) == "config_not_private"


@pytest.mark.clause("CLI-245", "CLI-058")
@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "socket", "device", "parent", "ancestor", "under a file"])
def test_what_is_no_file_of_its_own_is_refused_and_not_waited_for(place, kind):
    """A link is not followed, wherever on the way it stands; a FIFO is not waited for."""
    real = write(place, document())
    path = place / "other.toml"
    match kind:
        case "link":
            path.symlink_to(real)
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path, 0o600)
        case "socket":
            socket.socket(socket.AF_UNIX).bind(str(path))
        case "device":
            path = Path("/dev/null")
        case "parent":
            (place / "link").symlink_to(place)
            path = place / "link" / "config.toml"
        case "ancestor":
            (place / "deep").mkdir(mode=0o700)
            write(place / "deep", document())
            (place / "link").symlink_to(place)
            path = place / "link" / "deep" / "config.toml"
        case "under a file":
            path = real / "config.toml"
    assert rule_of(path) == "config_not_private"


def test_a_path_has_a_root():
    """Nothing is looked for in the folder one stands in."""
    assert rule_of(Path("config.toml")) == "config_path_unresolved"


@pytest.mark.clause("CLI-100", "CLI-101")
def test_a_new_file_is_made_for_its_owner_with_the_folders_it_lacks(place):
    """Whatever mask the caller has; nothing else is left."""
    mask = os.umask(0)
    try:
        make_folder(place / "a" / "b" / "config.toml")
        create_owned(place / "a" / "b" / "config.toml", b"x")
    finally:
        os.umask(mask)
    path = place / "a" / "b" / "config.toml"
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"x", 0o600)
    assert [folder.stat().st_mode & 0o777 for folder in (path.parent, path.parent.parent)] == [0o700] * 2
    assert [item.name for item in path.parent.iterdir()] == ["config.toml"]


@pytest.mark.clause("CLI-102", "CLI-101")
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_there_is_not_written_over(place, kind):
    """Not even through a link, or where the link leads nowhere."""
    path = place / "config.toml"
    {
        "file": lambda: path.write_bytes(b"mine"),
        "link": lambda: path.symlink_to(place / "nowhere"),
        "folder": path.mkdir,
    }[kind]()
    assert refused(create_owned, path, b"x").code == "configuration_exists"
    assert [item.name for item in place.iterdir()] == ["config.toml"]
    assert kind != "file" or path.read_bytes() == b"mine"


@pytest.mark.clause("CLI-100")
def test_no_link_is_followed_on_the_way_to_a_new_file(place, tmp_path):
    """A linked folder is refused, and nothing is made behind it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (place / "link").symlink_to(elsewhere)
    error = refused(make_folder, place / "link" / "deep" / "config.toml")
    assert error.data == {"configuration_rule": "config_not_private"}
    assert list(elsewhere.iterdir()) == []


@pytest.mark.clause("CLI-101")
def test_of_many_who_make_it_one_does(place):
    """The others are told, and the file is the one that was made."""
    ended: list[str] = []
    start = threading.Barrier(8)

    def make(number: int) -> None:
        start.wait()
        try:
            make_folder(place / "new" / "config.toml")
            create_owned(place / "new" / "config.toml", f"{number}".encode() * 1000)
            ended.append(f"{number}")
        except HeadwaterError as error:
            ended.append(error.code)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = (word for word in ended if word != "configuration_exists")
    assert (place / "new" / "config.toml").read_text() == winner * 1000
    assert [item.name for item in (place / "new").iterdir()] == ["config.toml"]


@pytest.mark.clause("CLI-242")
def test_a_file_is_replaced_whole_and_keeps_its_mode(place):
    """A new file takes its name; nothing else is left."""
    path = write(place, "before", 0o400)
    inode = path.stat().st_ino
    replace_owned(path, b"before", b"after")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"after", 0o400)
    assert path.stat().st_ino != inode
    assert [item.name for item in place.iterdir()] == ["config.toml"]


@pytest.mark.clause("CLI-242")
def test_what_fails_on_the_way_leaves_the_file_as_it_was(place, monkeypatch):
    """Before the new one has its name, only the old one can be read."""
    path = write(place, "before")

    def broken(*_arguments, **_more):
        assert path.read_bytes() == b"before"
        raise OSError(5, "the disk is gone")

    monkeypatch.setattr(os, "rename", broken)
    assert refused(replace_owned, path, b"before", b"after").code == "invalid_configuration"
    assert path.read_bytes() == b"before"
    assert [item.name for item in place.iterdir()] == ["config.toml"]


@pytest.mark.clause("CLI-243", "CLI-1021", "CLI-936")
def test_what_somebody_else_wrote_meanwhile_stays(place):
    """The bytes that the edit was made from are not there any more."""
    path = write(place, "theirs")
    error = refused(replace_owned, path, b"before", b"after")
    assert (error.code, error.stage, error.next_action) == ("revision_conflict", "publication", "retry_explicitly")
    assert path.read_bytes() == b"theirs"


@pytest.mark.clause("CLI-243")
def test_two_that_replace_exclude_each_other(place):
    """Of many edits of the same bytes one is kept; no other claims that it was."""
    path = write(place, "before")
    ended: list[str] = []
    start = threading.Barrier(8)

    def edit(number: int) -> None:
        start.wait()
        try:
            replace_owned(path, b"before", f"{number}".encode())
            ended.append(f"{number}")
        except HeadwaterError as error:
            ended.append(error.code)

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [word for word in ended if word != "revision_conflict"] == [path.read_text()]


@pytest.mark.clause("CLI-245")
def test_a_file_of_others_is_not_replaced(place):
    """It is refused as by a read, and stays."""
    path = write(place, "before", 0o644)
    assert refused(replace_owned, path, b"before", b"after").data == {"configuration_rule": "config_not_private"}
    assert path.read_bytes() == b"before"


@pytest.mark.clause("CLI-101", "CLI-242")
@pytest.mark.parametrize("is_new", [True, False])
def test_what_is_written_is_on_the_disk_before_it_has_its_name_and_before_it_is_told(place, monkeypatch, is_new):
    """First the bytes, then the name, then the folder that holds the name."""
    path = place / "config.toml"
    if not is_new:
        write(place, "before")
    done: list[str] = []
    real = {name: getattr(os, name) for name in ("fsync", "link", "rename")}

    def noted(name):
        def call(*arguments, **more):
            done.append("folder" if name == "fsync" and Path(f"/dev/fd/{arguments[0]}").is_dir() else name)
            return real[name](*arguments, **more)

        return call

    for name in real:
        monkeypatch.setattr(os, name, noted(name))
    if is_new:
        create_owned(path, b"after")
    else:
        replace_owned(path, b"before", b"after")
    assert done == ["fsync", "link" if is_new else "rename", "folder"]


KILLED = """
import os, signal, sys
from pathlib import Path
from headwater.configuration.files import replace_owned
setattr(os, sys.argv[2], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
replace_owned(Path(sys.argv[1]), b"before", b"after" * 100_000)
"""


@pytest.mark.clause("CLI-242")
@pytest.mark.parametrize("step", ["fchmod", "fsync", "rename"])
def test_whoever_is_killed_on_the_way_leaves_the_old_file_whole(place, step):
    """At each step between the reading and the name; the next one writes as if nothing had been."""
    path = write(place, "before")
    assert subprocess.run([sys.executable, "-c", KILLED, path, step]).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"before"
    assert all(item.stat().st_mode & 0o077 == 0 for item in place.iterdir())
    replace_owned(path, b"before", b"after")
    assert path.read_bytes() == b"after"
