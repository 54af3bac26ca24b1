"""What an instance's revisions follow from: its own settings, and what its connector declares.

A revision is the SHA-256, in lower hex, of canonical JSON: keys sorted, no white space, UTF-8.
"""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from headwater.configuration.model import Entry
from headwater.configuration.refusals import unusable
from headwater.manifest.auth import Method
from headwater.manifest.document import digest
from headwater.manifest.endpoints import is_reachable


class Declared(Struct, frozen=True):
    """What a connector declares of itself: its version, its ways to sign in, and where it goes.

    With `takes_endpoint` an instance has one, its own or the `endpoint` that is declared. `profile` is how it is signed
    in where the instance does not say. `trust` digests the certificates that the operator has believed there, and is
    empty where those are the system's.
    """

    version: str = ""
    methods: Mapping[str, Method] = field(default_factory=dict)
    takes_endpoint: bool = False
    endpoint: str | None = None
    profile: str | None = None
    trust: str = ""


def derived(entry: Entry, declared: Declared) -> Entry:
    """Return an instance with its endpoint, its profile and its revisions; a pinned one as it is.

    Raise `invalid_configuration` for an endpoint that cannot be used, or a profile that is not declared. An instance
    without the endpoint that it needs has none yet, and a profile is left open where several are declared.
    """
    if entry.pins is not None:
        return entry
    endpoint = entry.endpoint or declared.endpoint
    if entry.endpoint is not None and not is_reachable(entry.endpoint):
        raise unusable("the endpoint of an instance is not https, or holds a user, a query or a fragment")
    only = next(iter(declared.methods)) if len(declared.methods) == 1 else None
    profile = entry.profile or declared.profile or only
    if profile is not None and profile not in declared.methods:
        raise unusable("the profile of an instance is none that its connector declares")
    allowed = entry.permissions and {
        "profiles": sorted(entry.permissions.profiles),
        "operations": sorted(entry.permissions.operations),
    }
    whole = {
        "connector": entry.connector,
        "version": declared.version,
        "endpoint": endpoint,
        "profile": profile,
        "permissions": allowed,
        **_told(declared.trust),
    }
    credential = None if profile is None else credential_revision(endpoint, declared.methods[profile], declared.trust)
    return replace(
        entry, endpoint=endpoint, profile=profile, configuration_revision=digest(whole), credential_revision=credential
    )


def credential_revision(endpoint: str | None, method: Method, trust: str = "") -> str:
    """Digest where a credential goes and how it authenticates, and nothing else (facts-cli 1.3)."""
    return digest({"endpoint": endpoint, "authentication": method.authentication, **_told(trust)})


def _told(trust: str) -> dict[str, str]:
    """Return a member for what the operator said: without a word of theirs, a revision is what it always was."""
    return {"trust": trust} if trust else {}


def executable_selection(entry: Entry) -> str | None:
    """Digest which program a pinned entry selects; None for any other."""
    if entry.pins is None:
        return None
    pins, executable = entry.pins, entry.pins.executable
    whole = {
        "instance": entry.instance_id,
        "adapter": pins.adapter_id,
        "revision": entry.configuration_revision,
        "protocol": pins.protocol,
        "executable": {"path": str(executable.path), "sha256": executable.sha256, "args": list(executable.args)},
    }
    return digest(whole if pins.private_protocol is None else {**whole, "private_protocol": pins.private_protocol})
