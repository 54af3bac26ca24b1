"""A sealed file that a typed passphrase opens: an owner without a terminal cannot ask for it; one that has one does."""

import json

from launch.conftest import TOKEN, launching
from signin.terminal import terminal


def test_the_owner_asks_at_its_own_terminal(tmp_path, shop, commands):
    with launching(tmp_path, shop, commands, opened_by="passphrase_file") as headwater:
        headwater.write("collect.toml", "".join(typed(headwater)))
        told = headwater.launch()
        assert (told.status, told.failure["code"]) == (1, "custody_unavailable")
        assert told.failure["next_action"] == "unlock_keyring"
        assert headwater.type("setup", "owner-stop").result["disposition"] == "stopped"
        with terminal(headwater.words("owner")[1:]) as owner:
            while not headwater.owner.socket.exists():
                assert owner.process.poll() is None
            with headwater.launching() as asking:
                owner.until(b"Passphrase of the sealed file")
                owner.type(b"k" * 43 + b"\n")
                assert json.loads(asking.communicate(timeout=60)[0]) == {"token": TOKEN}
            assert json.loads(headwater.launch().stdout) == {"token": TOKEN}
            assert headwater.type("setup", "owner-stop").result["disposition"] == "stopped"
            assert owner.process.wait(20) == 0


def typed(headwater):
    """Return the lines of collect.toml without the file that the passphrase stands in."""
    lines = (headwater.place / "collect.toml").read_text().splitlines(keepends=True)
    return [line for line in lines if not line.startswith("passphrase_file")]
