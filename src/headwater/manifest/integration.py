"""An integration's manifest (spec/004): who the provider is, what can be done there, and how a person signs in.

It is read without I/O, and every reason to refuse it is told at once, each with its place (INT-107, INT-108). Beside
the contract's members it knows a few of this project: how a credential is sent and probed where no code does it
(`scheme`, `header`, `prefix`, `identity`, `oauth` and `evidenceLifetimeMs` of a method), the `hosts` that its code may
reach, and whether that is through the host's HTTP client or, for other protocols, over a `network` of its own.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from msgspec import Struct

from headwater import limits
from headwater.manifest.auth import Flow, Method
from headwater.manifest.auth_methods import read_methods
from headwater.manifest.capabilities import Vocabulary, standard, unmet
from headwater.manifest.document import parse
from headwater.manifest.faults import Fault, Reader, refusal

RETRY_SAFETY: Final = ("idempotent", "lookup", "manual_reconciliation")
SIGNATURES: Final = ("hmac_sha256",)
NETWORKS: Final = ("host", "own")
ACTIONS: Final = ("refresh", "configure", "disconnect")
_CONCURRENCY: Final = 4
_CONCURRENCY_CEILING: Final = 10
_KEY: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SEMVER: Final = re.compile(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")
_MEMBERS: Final = frozenset(
    {"key", "version", "provider", "displayName", "description", "capabilities", "fulfillment"}
    | {"auth", "catalog", "actions", "sync", "webhooks", "hosts", "network"}
)


class Integration(Struct, frozen=True):
    """What an integration declares. `warnings` are sentences for the operator; they refuse nothing."""

    key: str
    version: str
    provider: str
    display_name: str
    description: str
    capabilities: frozenset[str]
    methods: Mapping[str, Method]
    auth_type: Flow
    enabled_by_default: bool
    actions: frozenset[str]
    resource_concurrency: int = _CONCURRENCY
    retry_safety: str | None = None
    signature: str | None = None
    hosts: tuple[str, ...] = ()
    network: str = "host"
    warnings: tuple[str, ...] = ()

    @property
    def needs_hooks(self) -> bool:
        """Whether code of the integration signs a person in, whatever else it does."""
        return any(method.scheme == "hooks" for method in self.methods.values())


def read_integration(document: bytes, known: Vocabulary | None = None) -> Integration:
    """Read an integration's manifest, or raise `invalid_manifest` with every fault and its place."""
    integration, faults = examine_integration(document, known)
    if integration is None:
        raise refusal("invalid_manifest", "The integration's manifest is refused; nothing was started.", faults)
    return integration


def examine_integration(document: bytes, known: Vocabulary | None = None) -> tuple[Integration | None, list[Fault]]:
    """Read a manifest and return the integration, or None and the faults."""
    root, faults = parse(document)
    if faults:
        return None, faults
    reader = Reader()
    integration = _integration(reader, root, standard() if known is None else known)
    return (None, reader.faults) if reader.faults else (integration, [])


def _integration(reader: Reader, root: dict[str, Any], known: Vocabulary) -> Integration:
    reader.no_others(root, _MEMBERS)
    capabilities = _capabilities(reader, root, known)
    methods = read_methods(reader, root)
    flows = {method.flow for method in methods.values()}
    _check_capabilities(reader, capabilities, known, flows)
    auth_type, enabled = _catalog(reader, root, flows)
    concurrency, warnings = _concurrency(reader, root)
    return Integration(
        key=reader.shaped(root, "key", _KEY, "must be kebab-case, such as acme-tickets"),
        version=reader.shaped(root, "version", _SEMVER, "must be a version such as 1.0.0 (SemVer 2.0.0)"),
        provider=_provider(reader, root),
        display_name=reader.plain(root, "displayName", limits.LABEL_CHARACTERS),
        description=reader.plain(root, "description", limits.DESCRIPTION_CHARACTERS),
        capabilities=frozenset(capabilities),
        methods=methods,
        auth_type=auth_type,
        enabled_by_default=enabled,
        actions=_actions(reader, root, capabilities),
        resource_concurrency=concurrency,
        retry_safety=_choice_of(reader, root, "ticket_fulfillment" in capabilities, "fulfillment"),
        signature=_choice_of(reader, root, "webhooks" in capabilities, "webhooks"),
        hosts=_hosts(reader, root),
        network=reader.choice(root, "network", NETWORKS) or "host",
        warnings=warnings,
    )


def _provider(reader: Reader, root: dict[str, Any]) -> str:
    provider = reader.table(root, "provider", required=True)
    with reader.at("provider"):
        reader.no_others(provider, frozenset({"name"}))
        return reader.shaped(provider, "name", _HOST, "must be a host name, such as tickets.acme.example")


def _capabilities(reader: Reader, root: dict[str, Any], known: Vocabulary) -> Sequence[str]:
    names = reader.names(root, "capabilities", required=True) or ()
    for index, name in enumerate(names):
        with reader.at("capabilities", index):
            if name not in known:
                reader.fault("unknown_capability", "is no capability that this Headwater knows")
            elif name in names[:index]:
                reader.fault("repeated", "stands twice")
    return names


def _check_capabilities(reader: Reader, declared: Sequence[str], known: Vocabulary, flows: set[Flow]) -> None:
    with reader.at("capabilities"):
        for name, missing in unmet(declared, known):
            reader.fault("dependency", f"{name} needs {missing}")
        if "account" in declared and not flows:
            reader.fault("dependency", "account needs an auth method")
        if "credential_refresh" in declared and not flows - {"token"}:
            reader.fault("dependency", "credential_refresh needs a flow that can return a refresh token")


def _catalog(reader: Reader, root: dict[str, Any], flows: set[Flow]) -> tuple[Flow, bool]:
    catalog = reader.table(root, "catalog", required=True)
    with reader.at("catalog"):
        reader.no_others(catalog, frozenset({"authType", "enabledByDefault"}))
        kind = reader.choice(catalog, "authType", get_args(Flow), required=True)
        if kind is not None and kind not in flows:
            with reader.at("authType"):
                reader.fault("unused_flow", "is the flow of no method here")
        enabled = reader.flag(catalog, "enabledByDefault", required=True)
    return kind or "token", bool(enabled)  # type: ignore[return-value]  # `choice` lets through nothing else


def _actions(reader: Reader, root: dict[str, Any], capabilities: Sequence[str]) -> frozenset[str]:
    actions = reader.table(root, "actions", required=True)
    with reader.at("actions"):
        reader.no_others(actions, frozenset(ACTIONS))
        chosen = frozenset(name for name in ACTIONS if reader.flag(actions, name))
        if "refresh" in chosen and "manual_sync" not in capabilities:
            with reader.at("refresh"):
                reader.fault("dependency", "refresh needs the capability manual_sync")
    return chosen


def _concurrency(reader: Reader, root: dict[str, Any]) -> tuple[int, tuple[str, ...]]:
    sync = reader.table(root, "sync")
    with reader.at("sync"):
        reader.no_others(sync, frozenset({"resourceConcurrency"}))
        given = sync.get("resourceConcurrency", _CONCURRENCY)
        if type(given) is not int or given < 1:
            with reader.at("resourceConcurrency"):
                reader.fault("type", "must be a positive integer")
            return _CONCURRENCY, ()
    if given <= _CONCURRENCY_CEILING:
        return given, ()
    return _CONCURRENCY_CEILING, (f"sync.resourceConcurrency is held to {_CONCURRENCY_CEILING}.",)


_CHOICES: Final = {"fulfillment": ("retrySafety", RETRY_SAFETY), "webhooks": ("signature", SIGNATURES)}


def _choice_of(reader: Reader, root: dict[str, Any], is_declared: bool, member: str) -> str | None:
    """Read the one choice of a member that stands exactly where its capability is declared."""
    if not is_declared:
        if member in root:
            with reader.at(member):
                reader.fault("dependency", "stands without the capability that it is for")
        return None
    name, choices = _CHOICES[member]
    holder = reader.table(root, member, required=True)
    with reader.at(member):
        reader.no_others(holder, frozenset({name}))
        return reader.choice(holder, name, choices, required=True)


def _hosts(reader: Reader, root: dict[str, Any]) -> tuple[str, ...]:
    hosts = reader.names(root, "hosts") or ()
    for index, host in enumerate(hosts):
        if not _HOST.fullmatch(host):
            with reader.at("hosts", index):
                reader.fault("shape", "must be a host name, such as api.acme.example")
    return tuple(hosts)
