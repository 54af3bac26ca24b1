"""Where things are kept, read once from the command line and the environment."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from headwater import limits
from headwater.errors import HeadwaterError, refuse


class Settings(NamedTuple):
    """The paths of one Headwater. Nothing is searched for in the working directory."""

    config_path: Path
    state_dir: Path

    @property
    def collect_path(self) -> Path:
        """What collecting adds to each instance: `collect.toml`, beside the configuration."""
        return self.config_path.with_name("collect.toml")

    @property
    def definitions_lock_path(self) -> Path:
        """Which release of definitions was installed last, beside the configuration."""
        return self.config_path.with_name("definitions.lock")

    @property
    def private(self) -> tuple[Path, ...]:
        """What no connector may see: the state, and the configuration with its folder where that is the usual one."""
        folder = self.config_path.parent
        if folder.parts[-2:] == (".config", "headwater"):
            return (self.state_dir, folder)
        return (self.state_dir, self.config_path, self.collect_path)

    @property
    def database_path(self) -> Path:
        """The one database."""
        return self.state_dir / "headwater.db"

    @property
    def blobs_dir(self) -> Path:
        """The bytes that records refer to, by SHA-256."""
        return self.state_dir / "blobs"

    @property
    def spool_dir(self) -> Path:
        """Where running connectors leave bytes, a folder a run."""
        return self.state_dir / "spool"

    @property
    def live_dir(self) -> Path:
        """One socket a live run."""
        return self.state_dir / "live"

    @property
    def state_keys_path(self) -> Path:
        """The keys of unfinished sign-ins."""
        return self.state_dir / "auth-state-keys"

    @property
    def token_path(self) -> Path:
        """The owner's token, for the server."""
        return self.state_dir / "owner-token"

    @property
    def definitions_dir(self) -> Path:
        """Definitions that were named on the command line, lowered."""
        return self.state_dir / "definitions"

    @property
    def server_log_path(self) -> Path:
        """A line for each request to the server."""
        return self.state_dir / "server.log"

    @property
    def locks_dir(self) -> Path:
        """One lock file an instance."""
        return self.state_dir / "locks"

    @property
    def browsers_dir(self) -> Path:
        """One browser profile an instance: its logins live there."""
        return self.state_dir / "browsers"

    @property
    def crashes_dir(self) -> Path:
        """Notes of what went wrong inside Headwater."""
        return self.state_dir / "crashes"

    @property
    def connectors_dir(self) -> Path:
        """Connectors that were added by the person."""
        return self.state_dir / "connectors"

    @property
    def releases_dir(self) -> Path:
        """The releases of definitions that were installed, a folder each."""
        return self.state_dir / "installed-definitions"


def resolve(config: str | None, state_dir: str | None, environment: Mapping[str, str] | None = None) -> Settings:
    """Choose the paths: the flag, then the XDG directory, then the default below HOME (CLI-051, CLI-054).

    With both flags given no variable is read. An XDG variable counts only where it is absolute, and no folder of
    somebody else's (CLI-052). A path that is not absolute, or too long, is refused (CLI-062).
    """
    variables = os.environ if environment is None else environment
    config_path = Path(config) if config else _below(variables, "XDG_CONFIG_HOME", ".config") / "config.toml"
    state_path = Path(state_dir) if state_dir else _below(variables, "XDG_STATE_HOME", ".local/state")
    for path in (config_path, state_path):
        if not path.is_absolute() or "\0" in str(path) or len(os.fsencode(path)) > limits.PATH_BYTES:
            raise _unresolved("A path has to begin with / and to have at most 4,096 bytes.")
    return Settings(config_path, state_path)


def _below(variables: Mapping[str, str], name: str, fallback: str) -> Path:
    if _is_own(variables.get(name, "")):
        return Path(variables[name]) / "headwater"
    if Path(variables.get("HOME", "")).is_absolute():
        return Path(variables["HOME"]) / fallback / "headwater"
    raise _unresolved(f"Neither a flag nor {name} nor HOME says where to keep things.")


def _is_own(folder: str) -> bool:
    """Whether this can be the user's folder: absolute, and nobody else's where it is there."""
    if not Path(folder).is_absolute():
        return False
    try:
        return Path(folder).stat().st_uid == os.geteuid()
    except OSError:
        return True


def _unresolved(message: str) -> HeadwaterError:
    return refuse("invalid_configuration", message, configuration_rule="config_path_unresolved")
