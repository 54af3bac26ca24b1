"""What happened in a run, as frozen values: faces show them, nothing decides by them."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tally:
    """What became of one stream's records: disjoint counts. `healed` counts gaps whose record came."""

    accepted: int = 0
    unchanged: int = 0
    deleted: int = 0
    rejected: int = 0
    gaps: int = 0
    healed: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.accepted + other.accepted,
            self.unchanged + other.unchanged,
            self.deleted + other.deleted,
            self.rejected + other.rejected,
            self.gaps + other.gaps,
            self.healed + other.healed,
        )

    @property
    def seen(self) -> int:
        """Records that came, whatever became of them."""
        return self.accepted + self.unchanged + self.deleted + self.rejected


@dataclass(frozen=True)
class RunStarted:
    """The connector's process runs and has its START."""

    run_id: str
    instance: str
    streams: tuple[str, ...]


@dataclass(frozen=True)
class Unconfined:
    """The connector was not given these bindings, and nothing on this machine keeps them from it."""

    run_id: str
    bindings: tuple[str, ...]


@dataclass(frozen=True)
class BrowserStarted:
    """A browser runs for the run: in a sandbox of its own or not, and kept from the owner's files or not."""

    run_id: str
    is_sandboxed: bool
    is_confined: bool


@dataclass(frozen=True)
class BatchStored:
    """A batch is durable; the tallies are those of the run so far."""

    run_id: str
    tallies: dict[str, Tally] = field(default_factory=dict)


@dataclass(frozen=True)
class Progressed:
    """The connector said how far it is. `text` is the connector's own."""

    run_id: str
    text: str
    stream: str | None = None
    reached: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class Asked:
    """The connector waits for the owner."""

    run_id: str
    kind: str
    timeout_seconds: float


@dataclass(frozen=True)
class Answered:
    """The owner's answer went out, or none came."""

    run_id: str
    status: str


Event = RunStarted | Unconfined | BrowserStarted | BatchStored | Progressed | Asked | Answered
