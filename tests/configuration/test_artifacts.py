"""Pinned programs: each is the very file that its digest names, or it is told."""

import os
from hashlib import sha256

import pytest
from configuration.documents import document, entry

from headwater.configuration.artifacts import changed
from headwater.configuration.reading import parse

PROGRAM = b"#!/bin/sh\nexit 0\n"


def pinned(path):
    """Return a configuration in which a consumer and an entry pin the program at a path."""
    executable = f'{{path = "{path}", sha256 = "{sha256(PROGRAM).hexdigest()}"}}'
    return parse(document(f"{entry(executable=executable)}[consumers.tool]\nexecutable = {executable}\n").encode())


@pytest.mark.clause("CLI-108")
@pytest.mark.parametrize("kind", ["byte", "missing", "link", "folder", "fifo"])
def test_a_program_that_is_not_what_was_pinned_is_told(tmp_path, kind):
    """One byte is enough; a link is not followed, and a FIFO is not waited for."""
    path = tmp_path / "program"
    path.write_bytes(PROGRAM)
    assert changed(pinned(path)) == []
    match kind:
        case "byte":
            path.write_bytes(PROGRAM.replace(b"0", b"1"))
        case "missing":
            path.unlink()
        case "link":
            path.rename(tmp_path / "real")
            path.symlink_to(tmp_path / "real")
        case "folder":
            path.unlink()
            path.mkdir()
        case "fifo":
            path.unlink()
            os.mkfifo(path)
    assert [executable.path for executable in changed(pinned(path))] == [path, path]
