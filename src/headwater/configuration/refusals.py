"""How a configuration is refused: by the rule that fired, and never with a path or with what the file holds."""

from typing import Any, Literal

from headwater.errors import HeadwaterError, refuse

Rule = Literal[
    "config_path_unresolved",
    "config_missing",
    "config_not_private",
    "owner_uid_mismatch",
    "config_too_large",
    "legacy_entry_unmigrated",
    "definition_instance_configured",
    "approval_clock_format_retired",
]


def unusable(why: str, rule: Rule | None = None, *, command: str = "", **data: Any) -> HeadwaterError:
    """Make the refusal of a configuration; `why` ends the sentence that it begins (CLI-061, CLI-901)."""
    if rule:
        data["configuration_rule"] = rule
    return refuse("invalid_configuration", f"config.toml cannot be used: {why}.", command=command, **data)
