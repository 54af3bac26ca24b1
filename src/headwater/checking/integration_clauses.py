"""What certifying asks of an integration, what to do where it fails, and which clause a fault breaks."""

from typing import Final, NamedTuple

from headwater.checking.clauses import Level
from headwater.manifest.faults import Fault


class Asked(NamedTuple):
    """One row: what a clause asks, what to do where it fails, and its level."""

    asks: str
    remedy: str
    level: Level = "must"


_MANIFEST: Final = "Correct integration.json at the place that is named."
_FIXTURE: Final = "Correct the hook, or what fixtures/provider.json says that the service answers."

ASKED: Final[dict[str, Asked]] = {
    "INT-102": Asked("The manifest has every member that it needs.", _MANIFEST),
    "INT-103": Asked("Key, version and texts have their form, and no member is unknown.", _MANIFEST),
    "INT-104": Asked("provider.name is a host name.", _MANIFEST),
    "INT-105": Asked("catalog.authType is the flow of a method; enabledByDefault is true or false.", _MANIFEST),
    "INT-130": Asked("Capabilities are known, and stand once.", _MANIFEST),
    "INT-131": Asked("Each capability has what it depends on.", _MANIFEST),
    "INT-132": Asked("Fulfillment and webhooks are described where they are declared.", _MANIFEST),
    "INT-134": Asked("Declared capabilities have their hooks, and no others are there.", "Add the hook, or remove it."),
    "INT-151": Asked("refresh stands only with manual_sync.", _MANIFEST),
    "INT-152": Asked("configure stands only where a hook implements it.", "Implement configure, or say false."),
    "INT-157": Asked("Actions are known, and true or false.", _MANIFEST),
    "INT-170": Asked("Auth methods have a snake_case key each, and one of the four flows.", _MANIFEST),
    "INT-171": Asked("Fields have one of the six types.", _MANIFEST),
    "INT-172": Asked("What a field asks is well formed.", _MANIFEST),
    "INT-173": Asked("Patterns compile, and are matched in linear time.", "Take repetitions out of repetitions."),
    "INT-177": Asked("No secret is written to the log.", "Write with ctx.log, which puts secrets out."),
    "INT-191": Asked("A refused credential is told as credential_invalid.", "Raise Refused('credential_invalid')."),
    "INT-195": Asked("Starting gives a challenge or an envelope, and stores nothing.", _FIXTURE),
    "INT-196": Asked("The account behind a credential is known by its id.", _FIXTURE),
    "INT-283": Asked("A service that is down is told as provider_unavailable.", "Call accepted() on each answer."),
    "INT-332": Asked("resourceConcurrency is a positive integer.", _MANIFEST),
    "INT-334": Asked("Lists come in pages that end.", "Say complete=True with the last page."),
    "INT-452": Asked(
        "What a service answers is checked; items fit their stream.", "Check it, or correct the schema."
    ),
    "INT-490": Asked("integration.py holds one class that can be loaded.", "Run it, and read what it says on stderr."),
    "INT-491": Asked("The code imports nothing of Headwater but the SDK.", "Import from headwater.sdk only."),
    "INT-492": Asked("Hooks end before their deadline.", "Give waits a bound, and loops an end."),
    "INT-493": Asked("Requests go to hosts that the manifest names.", "Add the host to `hosts`, or leave it alone."),
    "INT-521": Asked(
        "permission.json says who confirmed that the provider permits this.", "Write permission.json.", "should"
    ),
}  # fmt: skip

_BY_RULE: Final = {
    "unknown_capability": "INT-130",
    "repeated": "INT-130",
    "dependency": "INT-131",
    "source": "INT-490",
    "operation": "INT-490",
    "signature": "INT-134",
}
_BY_PLACE: Final = {
    "provider": "INT-104",
    "catalog": "INT-105",
    "actions": "INT-157",
    "sync": "INT-332",
    "fulfillment": "INT-132",
    "webhooks": "INT-132",
    "hosts": "INT-493",
}
_OF_FIELDS: Final = {"type": "INT-171", "pattern": "INT-173"}


def clause_of(fault: Fault) -> str:
    """Return the clause that a fault of a manifest, or between it and its code, breaks."""
    place, *rest = fault.pointer[1:].split("/")
    if fault.rule == "hook":
        return "INT-152" if place == "actions" else "INT-134"
    if fault.rule == "required" and not rest:
        return "INT-102"
    if fault.rule == "unknown_member" and place != "actions":
        return "INT-103"
    if place == "auth":
        return _OF_FIELDS.get(rest[-1], "INT-172") if "fields" in rest else "INT-170"
    if place == "capabilities" or not place:
        return _BY_RULE.get(fault.rule, "INT-102")
    return "INT-151" if fault.pointer == "/actions/refresh" and fault.rule == "dependency" else _other(place)


def _other(place: str) -> str:
    return _BY_PLACE.get(place, "INT-103")
