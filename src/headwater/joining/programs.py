"""What is run, what of it is wanted, and who follows it: the words in which a face asks for a collection run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.collect.inbox import Inbox
    from headwater.collect.plan import Authority
    from headwater.collect.ports import Observer, Respondent
    from headwater.collect.recovery import Recovered
    from headwater.collect.runs import Deadlines, Run
    from headwater.joining.door import Door
    from headwater.manifest.declaration import Declaration
    from headwater.wire.messages import CollectionMode, CollectionScope


@dataclass(frozen=True)
class Program:
    """A connector that is ready to be started: what it declares and the command that runs it.

    `certificates` are those that the operator has believed at its provider, None for the system's.
    """

    declaration: Declaration
    command: Sequence[str]
    connector: str
    instance: str
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Sequence[str] = ()
    streams: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    compatibility: str = ""
    bindings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    certificates: str | None = None

    @property
    def name(self) -> str:
        """The instance, as `<connector>/<instance>`."""
        return f"{self.connector}/{self.instance}"

    @property
    def all(self) -> Sequence[str]:
        """The streams that are collected where nothing else is asked for."""
        return self.streams or tuple(self.declaration.streams)


@dataclass(frozen=True)
class CollectRequest:
    """What to collect. Without `scope` and `streams` it is every stream the connector declares."""

    program: Program
    scope: CollectionScope | None = None
    streams: Sequence[str] = ()
    mode: CollectionMode | None = None
    authority: Authority | None = None
    deadlines: Deadlines | None = None


@dataclass(frozen=True)
class Watching:
    """Who follows a run. `started` gets it, to cancel it; `recovered` gets each run that was cut off before.

    Questions go to the `respondent`, and with `inbox` also to whoever looks there; those that the instance's connection
    can answer go through its `door` and no further.
    """

    observe: Observer
    respondent: Respondent | None = None
    started: Callable[[Run], None] = lambda _run: None
    recovered: Callable[[Recovered], None] = lambda _orphan: None
    inbox: bool = False
    door: Door | None = None

    @property
    def answers(self) -> bool:
        """Whether questions will be answered (CP-057)."""
        return self.inbox or self.respondent is not None or self.door is not None

    def answering(self, inbox: Inbox) -> Respondent | None:
        """Return who answers a run's questions."""
        from headwater.collect.inbox import Several

        asked = [one for one in (self.respondent, inbox if self.inbox else None) if one is not None]
        person = Several(asked) if asked else None
        return person if self.door is None else self.door.before(person)
