"""A world for the verb: the real registry and the real locks, with custody and a provider that tests can see into."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from headwater.connect.acquiring import Acquired, Acquiring
from headwater.connect.entries import Ask, Entered
from headwater.connect.envelope import Account, Credential
from headwater.connect.failures import AuthFailure
from headwater.connect.fields import checked
from headwater.connect.model import Connection, Target
from headwater.connect.ports import Note, Probed, unnoted
from headwater.connect.reading import Material, static
from headwater.connect.using import Used, Using
from headwater.connect.validating import Validating
from headwater.errors import HeadwaterError, refuse
from headwater.manifest.auth import Field, Identity, Method
from headwater.secret import Secret
from headwater.store.sqlite.connections import ConnectionRegistry
from headwater.store.sqlite.database import open_database
from headwater.store.turns import ConnectionTurns

TOKEN = Method(
    "api_token",
    "API token",
    "token",
    (Field("token", "API token", "token", required=True),),
    scheme="token",
    identity=Identity("api", "user", "/whoami", "/id"),
)
TARGET = Target(
    owner=1000,
    connector="shop",
    instance="me",
    alias="shop.me",
    instance_id="shop.me",
    configuration_revision="c1",
    authority="https://shop.example",
    endpoint="https://shop.example",
    methods=(TOKEN,),
    executable="declared/1",
)


class Clock:
    """The time of a test; it stands still until it is moved."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 30, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def move(self, **span: float) -> None:
        self.at += timedelta(**span)

    @property
    def millis(self) -> int:
        return int(self.at.timestamp() * 1000)


class Vault:
    """Custody in memory. `fails` names the calls that fail, and how."""

    read_only = False

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Secret] = {}
        self.calls: Counter[str] = Counter()
        self.fails: dict[str, HeadwaterError] = {}

    def _call(self, name: str) -> None:
        self.calls[name] += 1
        if name in self.fails:
            raise self.fails[name]

    async def write_new(self, scope: str, material: Secret, note: Note = unnoted) -> str:
        version = f"v{self.calls['write_new'] + 1}"
        note(version)
        self._call("write_new")
        self.kept[scope, version] = material
        return version

    async def read(self, scope: str, version: str) -> Secret:
        self._call("read")
        if (scope, version) not in self.kept:
            raise refuse("custody_unavailable", next_action="repair_connection")
        return self.kept[scope, version]

    async def delete(self, scope: str, version: str) -> str:
        self._call("delete")
        return "missing" if self.kept.pop((scope, version), None) is None else "deleted"

    async def probe(self) -> None:
        self._call("probe")


class Provider:
    """Who has which token. `says` are failures that come first, one a probe."""

    def __init__(self) -> None:
        self.accounts = {"anna": "anna", "anna2": "anna", "bert": "bert"}
        self.says: list[str | None] = []
        self.probes = 0
        self.valid_until: datetime | None = None
        self.scopes: tuple[str, ...] | None = None
        self.meanwhile = lambda: None

    async def probe(self, method: Method, credential: Credential) -> Probed:
        self.probes += 1
        self.meanwhile()
        said = self.says.pop(0) if self.says else None
        if said is not None:
            raise AuthFailure(said)
        account = self.accounts.get(credential.envelope.access_token.text())
        if account is None:
            raise AuthFailure("credential_invalid")
        return Probed(Account(account, "user", account.title()), self.scopes, self.valid_until)


async def as_it_is(method: Method, fields: Mapping[str, Secret]) -> Credential:
    """Take what was entered for the credential."""
    return static(method, checked(method, fields))


@dataclass
class World:
    """All of it together, for one instance."""

    place: Path
    clock: Clock
    vault: Vault = field(default_factory=Vault)
    provider: Provider = field(default_factory=Provider)
    target: Target = TARGET
    asked: int = 0

    def __post_init__(self) -> None:
        self.registry = ConnectionRegistry(open_database(self.place / "headwater.db"))
        self.turns = ConnectionTurns(self.place / "locks")
        self.pauses: list[float] = []

    def configure(self, **members: object) -> None:
        """Change what is configured."""
        self.target = replace(self.target, **members)

    def declare(self, **members: object) -> None:
        """Change what is declared of signing in."""
        self.configure(methods=(replace(self.target.methods[0], **members),))

    @property
    def acquiring(self) -> Acquiring:
        return Acquiring(self.registry, self.vault, self.provider, self.turns, self.target)

    @property
    def validating(self) -> Validating:
        material = Material(self.registry, self.vault, None, self.target)

        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        return Validating(self.registry, self.provider, self.turns, self.target, material, pause)

    def entering(self, token: str):
        """Return how a token is entered."""

        def ask(_method: Method) -> dict[str, Secret]:
            self.asked += 1
            return {"token": Secret(token)}

        return lambda _method: Entered(ask, as_it_is, self.vault)

    def connect(self, token: str = "anna", profile: str | None = None) -> Acquired:
        return asyncio.run(self.acquiring.connect(profile, self.entering(token)))

    def connect_by(self, ask: Ask) -> Acquired:
        """Connect with something that asks."""
        return asyncio.run(self.acquiring.connect(None, lambda _method: Entered(ask, as_it_is, self.vault)))

    def acquire(self, credential: Credential) -> Acquired:
        """Connect with a credential that was exchanged for."""

        async def sign_in(_method: Method, _fields: object) -> Credential:
            return credential

        self.declare(scheme="hooks", fields=())
        return asyncio.run(
            self.acquiring.connect(None, lambda _method: Entered(lambda _method: {}, sign_in, self.vault))
        )

    def reconnect(self, token: str = "anna2", revision: object = 1, reference: str | None = None) -> Acquired:
        return asyncio.run(self.acquiring.reconnect(reference, str(revision), self.entering(token)))

    def revalidate(self, revision: object = 1) -> Connection:
        return asyncio.run(self.validating.revalidate(None, str(revision)))

    def use(self, seconds: float = 30.0) -> Used:
        return asyncio.run(Using(self.validating).use(self.held, seconds))

    @property
    def held(self) -> Connection:
        """The one connection of the instance."""
        (held,) = self.registry.held(self.target.owner, self.target.instance_id)
        return held

    def token(self) -> str:
        """The token that is handed out."""
        return self.use().credential.envelope.access_token.text()


@contextmanager
def other(world: World) -> Iterator[World]:
    """Have the same world as another process has it."""
    elsewhere = World(world.place, world.clock, world.vault, world.provider, world.target)
    try:
        yield elsewhere
    finally:
        elsewhere.registry.close()
