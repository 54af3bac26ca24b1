"""A browser's profile: the folder that an instance keeps, and what must hold in it before a browser opens it."""

import json
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headwater import limits
from headwater.errors import HeadwaterError, refuse

# Where Chromium says at which port it listens.
PORT_FILE: Final = "DevToolsActivePort"

# What is typed into a form stays there: no password is remembered, and no history of fields is kept.
_PREFERENCES: Final = {
    "credentials_enable_service": False,
    "profile": {"password_manager_enabled": False},
    "autofill": {"profile_enabled": False, "credit_card_enabled": False},
}


def made(profile: Path) -> Path:
    """Make the folder, for its owner alone, and return where it really is; or raise `binding_unavailable`."""
    try:
        profile.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _refused() from error
    return profile.resolve()


def prepare(profile: Path) -> None:
    """Set the preferences, and take away what must not be there; raise `binding_unavailable` where that fails.

    That is the address of the last browser, the tabs that it had open, and whatever is neither a file nor a folder: the
    mark of a browser that was killed, perhaps on a machine of another name, and links by which a connector that has the
    folder could make the browser, which may do more than itself, read and write elsewhere.
    """
    try:
        _remove_links(profile)
        (profile / PORT_FILE).unlink(missing_ok=True)
        default = made(profile / "Default")
        if (default / "Sessions").is_dir():
            shutil.rmtree(default / "Sessions")
        (default / "Sessions").touch(mode=0o400)  # a file, so that no folder is made of tabs and what was sent in them
        preferences = _merged(_read(default / "Preferences"), _PREFERENCES)
        (default / "Preferences").write_text(json.dumps(preferences))
    except OSError as error:
        raise _refused() from error


def _remove_links(profile: Path) -> None:
    for folder, folders, files in os.walk(profile):
        for path in (Path(folder, name) for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                path.unlink()


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            return json.loads(file.read(limits.DOCUMENT_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return {}


def _merged(known: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    kept = known if isinstance(known, dict) else {}
    inner = {name: _merged(kept.get(name), value) for name, value in wanted.items() if isinstance(value, dict)}
    return {**kept, **wanted, **inner}


def _refused() -> HeadwaterError:
    message = "The folder of the browser's profile cannot be written."
    return refuse("binding_unavailable", message, safe="The connector was not started.")
