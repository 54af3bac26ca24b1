"""Collects what lies in a folder: a record for each file, and a delete for each one that is gone."""

import hashlib
from pathlib import Path

from headwater.sdk import Connector, Fail

connector = Connector()


def listing(folder):
    """Return the regular files below a folder as {path: size and digest}. Symbolic links are left alone."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            found[path.relative_to(folder).as_posix()] = {"size_bytes": len(content), "sha256": digest}
    return found


@connector.stream("files")
def files(stream):
    folder = Path(stream.run.options["path"])
    if not folder.is_dir():
        raise Fail("The folder is not there.", hint="manual_action_required")
    found = listing(folder)
    # The cursor holds what was sent, and nothing else: what a narrowed run leaves out comes in a later one.
    sent = dict(stream.cursor.get("sent", {}))
    for path, facts in found.items():
        if sent.get(path) != facts["sha256"] and stream.emit({"path": path, **facts}):
            sent[path] = facts["sha256"]
    for path in sorted(sent.keys() - found.keys()):
        if stream.delete({"path": path}):
            del sent[path]
    stream.save({"sent": sent})


connector.run()
