"""A git repository on this machine: its commits, and the refs that name them."""

import hashlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from headwater.sdk import Connector, Fail, RunContext, StreamRun

if TYPE_CHECKING:
    from headwater.connectors.git.commits import record
    from headwater.connectors.git.repository import GitError, Ref, Repository
else:
    from commits import record
    from repository import GitError, Ref, Repository

SAVE_EVERY: Final = 1_000
_KINDS: Final = {b"refs/heads/": "branch", b"refs/tags/": "tag", b"refs/remotes/": "remote"}

connector = Connector()


def repository_of(run: RunContext) -> Repository:
    """Open the repository that the owner named, or end the run."""
    path = run.options.get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        raise Fail("Set the option `path` to a git repository.", retryable=False, hint="manual_action_required")
    if not os.path.isdir(path):
        raise Fail(f"There is no folder {_shown(path)}.", hint="manual_action_required")
    try:
        return Repository(path)
    except GitError as error:
        raise Fail(
            f"{_shown(path)} cannot be read as a git repository: {error}.", hint="manual_action_required"
        ) from error


@connector.stream("commits")
def commits(stream: StreamRun) -> None:
    """Collect the commits that came since the tips of the last run, parents before children."""
    repository = repository_of(stream.run)
    try:
        _walk(stream, repository)
    except GitError as error:
        raise Fail(f"Git could not list the commits: {error}.") from error


def _walk(stream: StreamRun, repository: Repository) -> None:
    """Emit the new commits, and save after every thousand which of those emitted have no child among them.

    A commit comes after all its ancestors, so whatever such a tip reaches was emitted, at any moment of the walk.
    """
    shallow = repository.shallow()
    known: list[str] = stream.cursor.get("tips", []) if stream.cursor.get("shallow", "") == shallow else []
    # A tip that was pruned since says nothing any more: what it alone reached is gone, and what it shared is asked for.
    found = repository.peel(known) if known else []
    tips = dict.fromkeys(sha for sha, kind in filter(None, found) if kind == "commit")
    count = unsaved = 0
    for sha, raw in repository.commits(list(tips)):
        data = record(sha, raw)
        stream.emit(data)
        for parent in data["parents"]:
            tips.pop(parent, None)
        tips[sha] = None
        count, unsaved = count + 1, unsaved + 1
        # A cursor over very many tips is long: it is saved as seldom as it is long.
        if unsaved >= max(SAVE_EVERY, len(tips)):
            stream.save({"tips": list(tips), "shallow": shallow})
            stream.progress(f"{count:,} commits read", count=count)
            unsaved = 0
    stream.save({"tips": list(tips), "shallow": shallow})
    stream.progress(f"{count:,} commits read", count=count)


@connector.stream("refs")
def refs(stream: StreamRun) -> None:
    """Collect the refs that are new or changed, and delete those that are gone from a listing that is whole."""
    repository = repository_of(stream.run)
    try:
        listed, broken = repository.refs()
        found = repository.peel(ref.target for ref in listed if ref.target)
    except GitError as error:
        raise Fail(f"Git could not list the refs: {error}.") from error
    known: dict[str, str] = stream.cursor.get("refs", {})
    present: dict[str, str] = {}
    for data in _records(listed, iter(found)):
        mark = _mark(data)
        present[data["name"]] = mark
        if known.get(data["name"]) != mark:
            stream.emit(data)
    gone = known.keys() - present.keys()
    if broken:
        stream.skip("broken_refs", f"Git cannot read every ref, so none is taken for gone: {broken}")
        present.update((name, known[name]) for name in gone)
    else:
        for name in sorted(gone):
            stream.delete({"name": name})
    stream.save({"refs": present})


def _records(listed: list[Ref], found: Iterator[tuple[str, str] | None]) -> Iterator[dict[str, Any]]:
    """Join each ref with the object that it leads to."""
    for ref in listed:
        name = _named(ref.name)
        sha, kind = (next(found) if ref.target else None) or (None, None)
        yield {
            "name": name,
            "kind": _kind(ref.name),
            "target": ref.target,
            "peeled": sha,
            "peeled_type": kind,
            "symbolic_target": _named(ref.symbolic_target) or None,
            "lossy": "\\" in name,
        }


def _mark(data: dict[str, Any]) -> str:
    """Return what changes whenever a ref does, short enough for a cursor over very many."""
    state = f"{data['target']} {data['peeled']} {data['symbolic_target']}"
    return hashlib.sha256(state.encode("utf-8")).hexdigest()[:16]


def _kind(name: bytes) -> str:
    if name == b"HEAD":
        return "head"
    return next((kind for prefix, kind in _KINDS.items() if name.startswith(prefix)), "other")


def _named(name: bytes) -> str:
    """Return a ref's name as text that stays its own: no ref has a backslash in its name (git-check-ref-format)."""
    return name.decode("utf-8", "backslashreplace")


def _shown(path: str) -> str:
    return path.encode("utf-8", "replace").decode("utf-8")


if __name__ == "__main__":
    connector.run()
