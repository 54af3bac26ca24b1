"""Connecting and collecting through each custody, as it is typed: a keyring, a mounted folder, a passphrase."""

import json

import pytest
from connect.conftest import SHOP, Connected, Shop, serving
from journeys.conftest import Headwater
from signin.terminal import terminal

TOKEN = "token-of-anna"


class Typed(Connected):
    """One whose every command is a process of its own."""

    run = Headwater.run


@pytest.fixture
def shop():
    with serving(Shop()) as shop:
        yield shop


@pytest.fixture
def headwater(tmp_path, shop):
    """A Headwater with the instance shop/me, and no custody but the platform's."""
    place = tmp_path / "headwater"
    place.mkdir(mode=0o700)
    return Typed(place)


def set_up(headwater, shop, *, top="", custody="", sealed=""):
    headwater.write(
        "collect.toml", f'format = "headwater-collect/1"\n{sealed}[instances."shop/me"]\nfolder = "{SHOP}"\n'
    )
    headwater.configure(f'[connectors.shop.instances.me]\nendpoint = "{shop.url}"\n{custody}')
    config = headwater.place / "config.toml"
    config.write_text(top + config.read_text())


def collect(headwater):
    return headwater.type("collect", "shop/me")


def is_refused(answer, next_action, code="custody_unavailable"):
    told = answer.failure
    assert TOKEN not in answer.stderr
    assert "/org/freedesktop" not in answer.stderr
    return (answer.status, told["code"], told["stage"], told["next_action"]) == (1, code, "custody", next_action)


def holds_the_token(folder):
    """Return the files that hold it in clear, but for the one that it was entered by."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "entry.json"]
    return [path for path in files if TOKEN.encode() in path.read_bytes()]


@pytest.mark.clause("CLI-400", "CLI-403", "CLI-406", "CLI-415", "INT-244")
def test_a_keyring_holds_the_credential_and_nothing_else_does(headwater, shop, desktop):
    set_up(headwater, shop, top=f'secret_service_socket = "{desktop.socket}"\n')
    desktop.log_in()
    assert headwater.connect().status == 0
    assert collect(headwater).status == 0
    desktop.kill()
    desktop.log_in()
    assert collect(headwater).status == 0
    desktop.lock()
    asked = shop.asked.total()
    assert is_refused(collect(headwater), "unlock_keyring")
    assert headwater.connection()["state"] == "custody_unavailable"
    assert desktop.locked() is True
    assert shop.asked.total() == asked
    assert holds_the_token(headwater.place) == []
    assert holds_the_token(desktop.folder) == []


@pytest.mark.clause("INT-244", "CLI-403", "CLI-404", "CLI-410")
@pytest.mark.parametrize("state", ["locked", "absent"])
def test_without_a_keyring_nobody_is_asked_and_nothing_is_kept(state, headwater, shop, desktop):
    mounted = headwater.place / "mounted" / "shop.me"
    mounted.mkdir(parents=True)
    (mounted / "api_token").write_text(json.dumps({"token": "second-of-anna"}))
    set_up(headwater, shop, top=f'secret_service_socket = "{desktop.socket}"\n')
    if state == "locked":
        desktop.log_in()
        desktop.lock()
    assert is_refused(headwater.connect(), "unlock_keyring")
    assert shop.asked.total() == 0
    assert holds_the_token(headwater.place) == []
    assert headwater.type("connections", "list", "--connector", "shop", "--instance", "me").result["connections"] == []
    with terminal(headwater.words("connections", "connect", "shop/me", "--credential-prompt")[1:]) as typed:
        assert typed.process.wait(30) == 1
        typed.rest()
        assert b"API token" not in typed.shown


@pytest.mark.clause("CLI-405", "CLI-407", "CLI-408")
def test_a_mounted_item_is_read_pinned_and_revalidated(headwater, shop, tmp_path):
    item = tmp_path / "mounted" / "shop.me" / "api_token"
    item.parent.mkdir(parents=True)
    item.write_text(json.dumps({"token": TOKEN}))
    custody = f'[custody]\nbinding = "mounted_secret"\ndirectory = "{tmp_path}/mounted"\n'
    set_up(headwater, shop, custody=custody)
    assert headwater.type("connections", "connect", "shop/me").status == 0
    assert collect(headwater).status == 0
    item.write_text(json.dumps({"token": "second-of-anna"}))
    assert is_refused(collect(headwater), "revalidate_connection")
    assert headwater.type("connections", "revalidate", "--expected-revision", "1").status == 0
    assert collect(headwater).status == 0
    assert [path.name for path in (tmp_path / "mounted").rglob("*")] == ["shop.me", "api_token"]
    assert holds_the_token(headwater.place) == []


def typed_at(headwater, words, *answers):
    """Type a command at a terminal, and an answer to each question; return its exit status and what it refused."""
    with terminal(headwater.words(*words)[1:]) as typed:
        for question, answer in answers:
            typed.until(question)
            typed.type(answer + b"\n")
        stderr = typed.process.communicate(timeout=60)[1]
        typed.rest()
    assert not any(answer in typed.shown for _, answer in answers)
    return typed.process.returncode, stderr


FIRST, AGAIN = b"Passphrase of the sealed file", b"The same passphrase again"


def test_a_passphrase_is_typed_at_the_terminal(headwater, shop):
    sealed = f'[custody]\nbinding = "sealed_file"\nfile = "{headwater.place}/custody.sealed"\n'
    set_up(headwater, shop, sealed=sealed)
    connect = ("connections", "connect", "shop/me", *headwater.entry(token=TOKEN))
    assert is_refused(headwater.type(*connect), "unlock_keyring")
    status, told = typed_at(headwater, connect, (FIRST, b"a long passphrase"), (AGAIN, b"a long passhprase"))
    assert (status, b"The two passphrases differ." in told) == (1, True)
    assert typed_at(headwater, connect, (FIRST, b"a long passphrase"), (AGAIN, b"a long passphrase"))[0] == 0
    assert typed_at(headwater, ("collect", "shop/me"), (FIRST, b"a long passphrase"))[0] == 0
    status, told = typed_at(headwater, ("collect", "shop/me"), (FIRST, b"another"))
    assert (status, b"does not open the sealed file" in told) == (1, True)
    assert is_refused(collect(headwater), "unlock_keyring")
    assert holds_the_token(headwater.place) == []


def test_an_occupied_instance_answers_before_the_passphrase_is_asked(headwater, shop):
    sealed = f'[custody]\nbinding = "sealed_file"\nfile = "{headwater.place}/custody.sealed"\n'
    set_up(headwater, shop, sealed=sealed)
    connect = ("connections", "connect", "shop/me", *headwater.entry(token=TOKEN))
    assert typed_at(headwater, connect, (FIRST, b"a long passphrase"), (AGAIN, b"a long passphrase"))[0] == 0
    status, told = typed_at(headwater, connect)
    assert (status, b"lifecycle_conflict" in told) == (1, True)
