"""A credential enters by a hidden prompt, a protected file or protected stdin, and by nothing else."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest
from signin.enters import ACCOUNT
from signin.terminal import ENTERS, terminal

from headwater import clock, limits
from headwater.cli import hidden, protected
from headwater.errors import HeadwaterError

SENTINEL = "sentinel-7c1f0a"
DOCUMENT = json.dumps({"account": "me", "token": SENTINEL})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def enter(*words: str, **options):
    done = subprocess.run(
        [sys.executable, str(ENTERS), *words],
        capture_output=True,
        timeout=60,
        **{"stdin": subprocess.DEVNULL, **options},
    )
    assert done.stderr == b""
    assert SENTINEL.encode() not in done.stdout
    return json.loads(done.stdout)


@pytest.fixture
def document(tmp_path) -> Path:
    path = tmp_path / "credential.json"
    path.write_text(DOCUMENT)
    path.chmod(0o600)
    return path


def is_refused(answer, path: Path | None = None) -> bool:
    assert path is None or str(path) not in json.dumps(answer)
    told = {name: answer.get(name) for name in ("code", "stage", "next_action", "exit")}
    return told == {
        "code": "protected_entry_unavailable",
        "stage": "protected_entry",
        "next_action": "select_protected_source",
        "exit": 2,
    }


class TestFile:
    @pytest.mark.clause("CLI-357")
    @pytest.mark.parametrize("mode", [0o400, 0o600])
    def test_a_file_of_its_owner_is_read(self, document, mode):
        document.chmod(mode)
        answer = enter("file", str(document))
        assert answer["digests"] == {"account": digest("me"), "token": digest(SENTINEL)}
        assert answer["shown"] == "{'account': <secret>, 'token': <secret>}"

    @pytest.mark.clause("CLI-357", "CLI-367")
    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610])
    def test_a_file_that_others_may_touch_is_refused(self, document, mode):
        document.chmod(mode)
        assert is_refused(enter("file", str(document)), document)

    @pytest.mark.clause("CLI-357")
    def test_links_are_refused(self, document, tmp_path):
        link, folder, hard = tmp_path / "link", tmp_path / "folder", tmp_path / "hard"
        link.symlink_to(document)
        folder.symlink_to(tmp_path)
        assert is_refused(enter("file", str(link)))
        assert is_refused(enter("file", str(folder / document.name)))
        hard.hardlink_to(document)
        assert is_refused(enter("file", str(document)))

    @pytest.mark.clause("CLI-357")
    def test_what_is_no_regular_file_is_refused(self, tmp_path):
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo, 0o600)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(tmp_path / "socket"))
        for path in (fifo, tmp_path / "socket", tmp_path, tmp_path / "absent", Path("/dev/null")):
            assert is_refused(enter("file", str(path)), path)
        listening.close()

    @pytest.mark.clause("CLI-357")
    def test_a_relative_path_is_refused(self, document):
        assert is_refused(enter("file", document.name, cwd=document.parent))
        assert is_refused(enter("file", f"{document.parent}/../{document.parent.name}/{document.name}"))

    @pytest.mark.clause("CLI-357", "CLI-358")
    def test_a_folder_that_others_may_write_is_refused(self, document):
        document.parent.chmod(0o777)
        assert is_refused(enter("file", str(document)))

    @pytest.mark.clause("CLI-357")
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
    def test_a_file_of_somebody_else_is_refused(self, document):
        os.chown(document, 12345, 12345)
        assert is_refused(enter("file", str(document)))

    @pytest.mark.clause("CLI-358")
    def test_the_file_that_was_opened_is_the_one_that_is_read(self, document, tmp_path, monkeypatch):
        other = tmp_path / "other.json"
        other.write_text(json.dumps({"account": "other", "token": "other"}))
        other.chmod(0o600)
        fstat = os.fstat

        def swap(descriptor):
            with suppress(FileNotFoundError):
                other.rename(document)
            return fstat(descriptor)

        within = os.open(tmp_path, os.O_DIRECTORY)
        from headwater import owned

        monkeypatch.setattr(owned.os, "fstat", swap)
        content = owned.read_at(within, document.name, 1000, private=False)
        os.close(within)
        assert content.reveal() == DOCUMENT.encode()


class TestDocument:
    @pytest.mark.clause("CLI-361", "CLI-365")
    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"{}",
            b"[]",
            b'"sentinel-7c1f0a"',
            b'{"account":"me"}',
            b'{"account":"me","token":"sentinel-7c1f0a","more":"sentinel-7c1f0a"}',
            b'{"account":"me","token":"sentinel-7c1f0a","token":"sentinel-7c1f0a"}',
            b'{"account":"me","token":"sentinel-7c1f0a","tok\\u0065n":"sentinel-7c1f0a"}',
            b'{"account":"me","token":"sentinel-7c1f0a"}{}',
            b'{"account":"me","token":"sentinel-7c1f0a"} sentinel-7c1f0a',
            b'{"account":"me","token":"sentinel-7c1f0a\xff"}',
            b'{"account":"me","token":"\\ud800sentinel-7c1f0a"}',
            b'\xef\xbb\xbf{"account":"me","token":"sentinel-7c1f0a"}',
            b'{"account":"me","token":7}',
            b'{"account":"me","token":null}',
            b'{"account":"me","token":["sentinel-7c1f0a"]}',
            b'{"account":"me","token":' + b"[" * 30000 + b"]" * 30000 + b"}",
            b'{"account":"me","token":NaN}',
            b"{'account':'me'}",
        ],
    )
    def test_anything_but_exactly_the_fields_is_refused(self, document, text):
        document.write_bytes(text)
        answer = enter("file", str(document))
        assert (answer["code"], answer["exit"]) == ("invalid_input", 2)

    @pytest.mark.clause("CLI-362")
    def test_nothing_is_trimmed(self, document):
        document.write_text('{"account":"me","token":" a "}\n')
        assert enter("file", str(document))["digests"]["token"] == digest(" a ")

    @pytest.mark.clause("CLI-363")
    def test_a_document_has_at_most_64_kib(self, document):
        def sized(size: int) -> str:
            return json.dumps(
                {"account": "me", "token": "x" * (size - len(json.dumps({"account": "me", "token": ""})))}
            )

        document.write_text(sized(limits.ENTRY_BYTES))
        assert "digests" in enter("file", str(document))
        document.write_text(sized(limits.ENTRY_BYTES + 1))
        assert is_refused(enter("file", str(document)))
        big = sized(limits.ENTRY_BYTES + 1).encode()
        assert enter("stdin", stdin=None, input=big)["code"] == "invalid_input"

    @pytest.mark.clause("CLI-368")
    def test_the_buffer_is_cleared_after_it_was_read(self, monkeypatch):
        buffer = bytearray(DOCUMENT.encode())
        monkeypatch.setattr(protected, "_from_stdin", lambda: buffer)
        assert protected.Source("stdin").read(ACCOUNT)["token"].reveal() == SENTINEL.encode()
        assert buffer == bytes(len(DOCUMENT))


class TestStdin:
    @pytest.mark.clause("CLI-359")
    def test_a_protected_file_is_read(self, document):
        with document.open("rb") as file:
            assert enter("stdin", stdin=file)["digests"]["token"] == digest(SENTINEL)

    @pytest.mark.clause("CLI-359")
    def test_a_pipe_of_this_session_is_read(self):
        assert enter("stdin", stdin=None, input=DOCUMENT.encode())["digests"]["token"] == digest(SENTINEL)

    @pytest.mark.clause("CLI-360")
    def test_a_pipe_from_another_session_is_refused(self):
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
            answer = enter("stdin", stdin=cat.stdout, start_new_session=True)
            cat.communicate(b"")
        assert is_refused(answer)

    @pytest.mark.clause("CLI-360")
    @pytest.mark.parametrize("kind", ["socket", "fifo", "terminal", "null", "broad", "hard"])
    def test_other_things_at_stdin_are_refused(self, kind, document, tmp_path):
        opened = self.opened(kind, document, tmp_path)
        try:
            assert is_refused(enter("stdin", stdin=opened[0]))
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def opened(self, kind: str, document: Path, tmp_path: Path) -> list[int]:
        if kind == "socket":
            return [end.detach() for end in socket.socketpair()]
        if kind == "terminal":
            return list(reversed(os.openpty()))
        if kind == "fifo":
            os.mkfifo(tmp_path / "fifo", 0o600)
            return [os.open(tmp_path / "fifo", os.O_RDWR)]
        if kind == "broad":
            document.chmod(0o644)
        if kind == "hard":
            (tmp_path / "hard").hardlink_to(document)
        return [os.open(os.devnull if kind == "null" else document, os.O_RDONLY)]


class TestChoice:
    @pytest.mark.clause("CLI-350", "CLI-352")
    @pytest.mark.parametrize(
        "flags", [{"prompt": True, "file": "/x"}, {"prompt": True, "stdin": True}, {"file": "/x", "stdin": True}]
    )
    def test_two_sources_are_refused_with_the_ways_there_are(self, flags):
        with pytest.raises(HeadwaterError, match="--credential-stdin") as caught:
            protected.chosen(**{"prompt": False, "file": None, "stdin": False, **flags})
        assert (caught.value.code, caught.value.exit_status) == ("protected_entry_unavailable", 2)

    @pytest.mark.clause("CLI-350")
    def test_one_source_is_used(self):
        assert protected.chosen(prompt=False, file="/x", stdin=False) == protected.Source("file", "/x")
        assert protected.chosen(prompt=False, file=None, stdin=False) is None


class TestTerminal:
    @pytest.mark.clause("CLI-354", "CLI-355", "CLI-364")
    def test_each_field_is_asked_for_and_not_shown(self):
        with terminal([str(ENTERS), "prompt"]) as session:
            before = session.modes
            session.until(b"Account (not shown): ")
            assert not session.modes & (termios.ECHO | termios.ICANON)
            session.type(b"mine\x7f\x7f\x7f\x7fme\r")
            session.until(b"Token (not shown): ")
            session.type(SENTINEL.encode() + b"\n")
            out, err = session.process.communicate(timeout=20)
            session.rest()
            assert session.modes == before
        assert json.loads(out)["digests"] == {"account": digest("me"), "token": digest(SENTINEL)}
        assert SENTINEL.encode() not in session.shown + out + err
        assert (b"not shown" in out, err) == (False, b"")

    @pytest.mark.clause("CLI-354")
    @pytest.mark.parametrize("end", [b"\x03", b"\x04"])
    def test_giving_up_is_an_interruption_and_restores_the_terminal(self, end):
        with terminal([str(ENTERS), "prompt"]) as session:
            before = session.modes
            session.until(b"Account (not shown): ")
            session.type(SENTINEL.encode() + end)
            out, _ = session.process.communicate(timeout=20)
            assert session.modes == before
        told = json.loads(out)
        assert (told["code"], told["exit"]) == ("interrupted", 130)

    @pytest.mark.clause("CLI-354")
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
    def test_a_signal_ends_the_program_after_the_terminal_was_restored(self, number):
        with terminal([str(ENTERS), "prompt"]) as session:
            before = session.modes
            session.until(b"Account (not shown): ")
            session.process.send_signal(number)
            out, _ = session.process.communicate(timeout=20)
            assert session.process.returncode == -number
            assert (session.modes, out) == (before, b"")

    @pytest.mark.clause("CLI-356")
    def test_what_is_too_long_is_refused(self):
        with terminal([str(ENTERS), "prompt"]) as session:
            before = session.modes
            session.until(b"Account (not shown): ")
            os.set_blocking(session.master, False)
            with suppress(BlockingIOError):
                for _ in range(1024):
                    while session.process.poll() is None:
                        with suppress(BlockingIOError):
                            session.type(b"x" * 1024)
                            break
            out, _ = session.process.communicate(timeout=20)
            assert session.modes == before
        assert json.loads(out)["code"] == "invalid_input"

    @pytest.mark.clause("CLI-356")
    def test_a_long_token_is_taken_whole(self):
        token = "x" * 8192
        with terminal([str(ENTERS), "prompt"]) as session:
            session.until(b"Account (not shown): ")
            session.type(b"me\n")
            session.until(b"Token (not shown): ")
            for start in range(0, len(token), 1024):
                session.type(token[start : start + 1024].encode())
            session.type(b"\n")
            out, _ = session.process.communicate(timeout=20)
        assert json.loads(out)["digests"]["token"] == digest(token)

    @pytest.mark.clause("CLI-351", "CLI-356")
    def test_without_a_terminal_there_is_no_prompt(self):
        assert is_refused(enter("prompt", start_new_session=True))

    @pytest.mark.clause("CLI-369")
    def test_the_entry_ends_after_five_minutes(self, monkeypatch):
        moments = iter([0.0, limits.ENTRY_SECONDS])
        monkeypatch.setattr(clock, "monotonic", lambda: next(moments))
        master, slave = os.openpty()
        asked = hidden.Hidden(slave, hidden._Signals())
        with pytest.raises(HeadwaterError) as caught:
            asked.ask("Token")
        assert (caught.value.code, caught.value.stage) == ("timeout", "protected_entry")
        os.close(master)
        os.close(slave)
