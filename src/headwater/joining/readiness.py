"""Whether this machine is ready: what Headwater stands on, looked at without changing anything."""

from __future__ import annotations

import asyncio
import os
import platform
import shlex
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headwater import guarantees
from headwater.errors import HeadwaterError
from headwater.joining.configured import configuration_of
from headwater.process.browser import find_browser, is_sandboxed
from headwater.process.confinement.survey import Survey, survey
from headwater.process.confinement.ways import HELD
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.configuration.model import Configuration
    from headwater.connect.ports import Custody, CustodyState

State = Literal["ready", "failed", "unknown"]


@dataclass(frozen=True)
class Prerequisite:
    """One thing that Headwater stands on; `command` is what to type next, or empty."""

    name: str
    state: State
    detail: str
    next_action: str = "none"
    command: str = ""


@dataclass(frozen=True)
class Readiness:
    """What was found. `confinement` says how connectors are held to their bindings.

    `keyring` is the place of credentials that is configured: `available`, `locked` or `unavailable`.
    """

    system: str
    keyring: str
    prerequisites: tuple[Prerequisite, ...]
    confinement: Survey


def readiness(settings: Settings) -> Readiness:
    """Look at everything, or raise `invalid_configuration` for a configuration that does not load (CLI-113)."""
    configuration, confinement = configuration_of(settings, needed=False, defined=False), survey()
    keyring, *custody = _custody(settings, configuration)
    found = (
        _configuration(settings, configuration),
        _metadata(settings),
        *custody,
        _sqlite(),
        _clock(settings, configuration),
        _guarantees(),
        _private(settings),
        _confinement(confinement),
        _browser(),
    )
    return Readiness(f"{platform.system()} {platform.release()}", keyring, found, confinement)


def _configuration(settings: Settings, configuration: Configuration) -> Prerequisite:
    if not os.path.lexists(settings.config_path):
        detail = "There is no config.toml yet: accounts need one, collecting alone does not."
        return Prerequisite("configuration", "unknown", detail, command="headwater setup init")
    from headwater.configuration.artifacts import changed

    if count := len(changed(configuration)):
        detail = f"Programs that it pins, and that are not what their digests name: {count}."
        return Prerequisite("configuration", "failed", detail, "check_configuration")
    return Prerequisite("configuration", "ready", f"{len(configuration.entries)} instances are configured.")


def _custody(settings: Settings, configuration: Configuration) -> tuple[CustodyState, Prerequisite, Prerequisite]:
    """Look whether credentials could be kept, without a prompt and without writing (CLI-108, CLI-109)."""
    from headwater.joining.reaching import custody_of

    try:
        custody, _ = custody_of(settings, configuration)
    except HeadwaterError as error:
        if error.code == "invalid_configuration":
            raise
        return "unavailable", _keyring("unavailable"), _qualification(None)
    state = asyncio.run(custody.state())
    return state, _keyring(state), _qualification(custody)


def _keyring(state: CustodyState) -> Prerequisite:
    if state == "available":
        return Prerequisite("keyring", "ready", "Credentials can be kept.")
    if state == "locked":
        return Prerequisite("keyring", "failed", "The keyring is locked; nothing was unlocked.", "unlock_keyring")
    detail = "The place for credentials cannot be used: no account can be connected. A sealed file needs no keyring."
    return Prerequisite("keyring", "failed", detail, "check_configuration")


def _qualification(custody: Custody | None) -> Prerequisite:
    """Say whether what custody has acknowledged is known to last (CLI-411)."""
    name = "persistent_custody_qualification"
    if custody is not None and custody.is_durable:
        return Prerequisite(name, "ready", "What is kept is on the disk before it is used.")
    return Prerequisite(name, "unknown", "Each credential is read back; that it survives a power cut is the keyring's.")


def _metadata(settings: Settings) -> Prerequisite:
    from headwater.store.sqlite.database import open_database

    if not settings.database_path.exists():
        return Prerequisite("metadata", "unknown", "Nothing has been collected yet.", command="headwater demo")
    try:
        open_database(settings.database_path, readonly=True).close()
    except HeadwaterError as error:
        if error.code == "metadata_schema_newer":
            raise  # like every command that opens it (CLI-085)
        return Prerequisite("metadata", "failed", error.message, error.next_action, error.command)
    return Prerequisite("metadata", "ready", "The database opens, and is of this release.")


def _sqlite() -> Prerequisite:
    from headwater.store.sqlite.database import sqlite_version

    version, is_safe = sqlite_version()
    if is_safe:
        return Prerequisite("sqlite", "ready", f"SQLite {version}.")
    return Prerequisite("sqlite", "failed", f"SQLite {version} can corrupt a database.", "upgrade")


def _clock(settings: Settings, configuration: Configuration) -> Prerequisite:
    """Say by which clock writes are approved: this machine's own is a weaker one (CLI-759)."""
    from headwater.joining.approval_clock import look_at_clock

    try:
        look_at_clock(settings, configuration)
    except HeadwaterError as error:
        is_known = error.code != "metadata_unavailable"
        return Prerequisite("approval_clock", "failed" if is_known else "unknown", error.message, error.next_action)
    detail = "Writes are approved by this machine's own clock: weaker than several, and never believed to go back."
    return Prerequisite("approval_clock", "ready", detail)


def _guarantees() -> Prerequisite:
    held = guarantees.held()
    if not held:
        detail = f"Nothing was tried on {sys.platform}: what is there is shown, and every other command is refused."
        return Prerequisite("guarantees", "failed", detail)
    weaker = [f"{name} ({form})" for name, form in held.items() if form != guarantees.HOLDS]
    detail = f"{len(held) - len(weaker)} of {len(held)} of the system hold; in a weaker form: {', '.join(weaker)}."
    return Prerequisite("guarantees", "ready", detail)


def _private(settings: Settings) -> Prerequisite:
    open_ = [str(path) for path in _ours(settings) if not _is_private(path)]
    if not open_:
        return Prerequisite("private_folders", "ready", "Nobody but you can enter the folders that are there.")
    detail = f"Others can enter, or own: {', '.join(open_)}."
    return Prerequisite(
        "private_folders", "failed", detail, "check_configuration", f"chmod 700 {shlex.quote(open_[0])}"
    )


def _ours(settings: Settings) -> Iterator[Path]:
    """Yield the folders that are Headwater's alone."""
    yield from (path for path in settings.private if path.is_dir())


def _is_private(path: Path) -> bool:
    status = path.stat()
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077


def _confinement(found: Survey) -> Prerequisite:
    used = next(way for way in found.ways if way.works)
    lacking = [name for name in HELD if name not in used.holds]
    if not lacking:
        return Prerequisite("confinement", "ready", f"Connectors are held to their bindings by {used.name}.")
    detail = f"Connectors are not held to these bindings: {', '.join(lacking)}."
    return Prerequisite("confinement", "failed", detail, "check_configuration", found.command)


def _browser() -> Prerequisite:
    program = find_browser()
    if program is None:
        return Prerequisite("browser", "unknown", "There is no Chromium: connectors that need a browser do not start.")
    sandbox = "" if is_sandboxed() else " It has no sandbox: Chromium has none for root."
    return Prerequisite("browser", "ready", f"Connectors that need a browser get {program}.{sandbox}")
