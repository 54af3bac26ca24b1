"""Approving for real: what may be approved, and the approval of one write.

Neither an owner nor a provider is started or asked for any of it (CLI-704).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from headwater import clock, limits
from headwater.connect.looking import selectors
from headwater.errors import HeadwaterError, refuse
from headwater.joining.approval_clock import check_clock, look_at_clock
from headwater.joining.configured import configuration_of
from headwater.operate.admission import admit_write
from headwater.operate.writes.model import MODE, Policy, Selected
from headwater.operate.writes.policy import admitted, check_names, published, shown
from headwater.operate.writes.subject import Place, prepared
from headwater.operate.writes.timing import LOCAL, measured
from headwater.store.sqlite.approvals import looked_at, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.configuration.model import Configuration
    from headwater.configuration.selecting import Selection
    from headwater.connect.model import Connection, Target
    from headwater.joining.operating import Aimed, Operating, Pins
    from headwater.joining.ways import Way
    from headwater.operate.writes.model import Attempt, Preparation, Proof
    from headwater.secret import Secret
    from headwater.settings import Settings
    from headwater.store.sqlite.approvals import Approvals

Shown = dict[str, Any]


class Approving:
    """What one Headwater's owner lets be written."""

    def __init__(
        self, settings: Settings, operating: Operating, passphrase: Callable[[str], Secret] | None = None
    ) -> None:
        self._settings = settings
        self._operating = operating
        self._passphrase = passphrase

    # Policies.

    def policy_status(self, selection: Selection) -> Shown:
        """Return the policy of an instance, where it has one, and whether it is of the instance as it is now."""
        target, way = self._served(selection)
        selected = _selected(target, way, way.description(None, launches=False).revision)
        with self._looked_at() as approvals:
            policy = approvals.policy(target.instance_id)
        if policy is None:
            return selectors(target)
        current = policy.selection == selected
        return {**selectors(target), "policy": shown(policy), "current": current}

    def policy_set(self, selection: Selection, operations: tuple[str, ...], expected: str | None) -> Shown:
        """Publish which writes of an instance may be approved, in the place of what was published before."""
        target, way = self._served(selection)
        description = way.description(None, launches=False)
        check_names(operations, description)
        with self._opened() as approvals:
            issuer, before = approvals.issuer(), approvals.policy(target.instance_id)
            if issuer is None:
                message = "No key signs approvals yet, and a policy is for one who does."
                raise refuse("approval_refused", message, safe="Nothing was changed.", command=_KEY_INIT)
            policy = Policy(
                policy_id=clock.identifier("policy"),
                instance_id=target.instance_id,
                issuer_id=issuer.issuer_id,
                revision=1,
                owner_uid=target.owner,
                selection=_selected(target, way, description.revision),
                operations=operations,
            )
            after = published(before, policy, expected)
            if not approvals.put_policy(before, after):
                raise refuse("revision_conflict", "Another command changed the policy meanwhile.")
        return {**selectors(target), "policy": shown(after), "current": True}

    def attempts(self, selection: Selection, limit: int) -> Shown:
        """Return the newest writes of an instance, with what is known of each.

        One that is open is being done now, or was left by a process that is gone: the next write settles it.
        """
        from headwater.store.sqlite.attempts import newest

        with naming("adapter"):
            target = self._operating.served(selection)[0]
        found = newest(self._settings.database_path, target.owner, target.instance_id, limit)
        return {**selectors(target), "attempts": [_told_attempt(attempt, at_ms) for attempt, at_ms in found]}

    # One write.

    def prepare(
        self, selection: Selection, operation: str, pins: Pins, reference: str | None, given: Any
    ) -> tuple[Aimed, Preparation]:
        """Return a write with what would be approved of it. Nothing is approved or kept."""
        aimed = self.aimed(selection, operation, pins, given)
        return aimed, self.prepared(aimed, reference, given)

    def prepared(self, aimed: Aimed, reference: str | None, given: Any) -> Preparation:
        """Return what would be approved of a write that was aimed already."""
        with self._looked_at() as approvals:
            return self._prepared(aimed, approvals, reference, given)

    def aimed(self, selection: Selection, operation: str, pins: Pins, given: Any) -> Aimed:
        """Return the write that is meant, or raise why it cannot be approved."""
        with naming("adapter"):
            aimed = self._operating.selected(selection, operation, pins, launches=False)
        admit_write(aimed.described)
        aimed.check(given)
        return aimed

    def issue_to(
        self, selection: Selection, write: tuple[str, Pins, str | None], given: Any, approved: str, output: str
    ) -> tuple[Aimed, str]:
        """Approve a write, and put that into a new file. Return the write, and what the approval is known by."""
        import asyncio

        from headwater.store.approval_file import check_place, put_proof

        check_place(output)
        operation, pins, reference = write
        aimed = self.aimed(selection, operation, pins, given)
        proof = asyncio.run(self.issue(aimed, reference, given, approved))
        put_proof(output, msgspec.json.encode(proof) + b"\n")
        return aimed, proof.reference

    def told(self, aimed: Aimed, preparation: Preparation, given: Any) -> Shown:
        """Return a preparation as it is shown, with the exact request where it is one."""
        subject = preparation.subject
        presentation: Shown = {"instance": aimed.target.name}
        presentation |= {name: subject["target"][name] for name in ("operation", "connection", "descriptor_revision")}
        request = aimed.way.request(aimed.described, given)
        presentation |= {"input": given} if request is None else {"request": request}
        policy = {"mode": MODE, "issuer": preparation.issuer.name, "audience": preparation.issuer.audience}
        return {
            "subject": dict(subject),
            "subject_sha256": preparation.sha256,
            "presentation": presentation,
            "approval_policy": {**policy, "max_lifetime_seconds": limits.PROOF_SECONDS + limits.PROOF_EARLY_SECONDS},
        }

    def filed(self, path: str) -> Proof:
        """Return the approval in a file, unread as to whether it is good. See `store.approval_file`."""
        from headwater.store.approval_file import read_proof_file

        return read_proof_file(path)

    async def issue(self, aimed: Aimed, reference: str | None, given: Any, approved: str) -> Proof:
        """Sign what a person approved, by the digest they saw. Raise `approval_refused` where that has changed."""
        from headwater.operate.writes.proof import make
        from headwater.vault.signing import sign

        with self._opened() as approvals:
            preparation = self._prepared(aimed, approvals, reference, given)
            key = preparation.issuer.active
            assert key is not None, "nothing is prepared without a key that signs"
            if approved != preparation.sha256:
                message = "What was approved is not what this is now: prepare it again, and look at it."
                raise refuse("approval_refused", message, safe="No approval was given.")
            now_ms = clock.millis()
            now = measured(now_ms, approvals.raised(now_ms))
            custody = self._custody(configuration_of(self._settings))
            document = await custody.read(preparation.issuer.issuer_id, key.version or "")
        return make(preparation, key, clock.entropy(32).hex(), now, lambda message: sign(document, message))

    def clock_check(self, selection: Selection | None) -> Shown:
        """Measure the time as approvals do, and say by what. It is no evidence for any approval (CLI-750)."""
        names: Shown = {}
        if selection is not None:
            with naming("adapter"):
                names = selectors(self._operating.served(selection)[0])
        now = look_at_clock(self._settings, configuration_of(self._settings))
        measure = {"lower_unix_ms": now.lower_ms, "upper_unix_ms": now.upper_ms}
        source = {"source": "local", "state": "weaker", "floor_unix_ms": now.lower_ms}
        return {**names, "observation": {"configuration_sha256": LOCAL, **measure}, "sources": [source]}

    # For a write that is admitted.

    def permitted(self, aimed: Aimed, approvals: Approvals, connection: Connection, given: Any) -> Preparation:
        """Return a write by its connection as its policy permits it now, or raise `approval_refused`."""
        target, described = aimed.target, aimed.described
        now = _selected(target, aimed.way, described.revision)
        known = approvals.policy(target.instance_id), approvals.issuer()
        policy, issuer = admitted(*known, described.operation.id, now)
        return prepared(place_of(target, connection), described, given, policy, issuer)

    def _served(self, selection: Selection) -> tuple[Target, Way]:
        """Return an instance, and how it is described; what it is connected under has to be of now (CLI-479)."""
        from headwater.connect.admission import admit_use
        from headwater.store.sqlite import connections

        with naming("adapter"):
            target, way = self._operating.served(selection)
        with connections.looked_at(self._settings.database_path) as registry:
            for connection in registry.held(target.owner, target.instance_id):
                admit_use(connection, target, clock.millis())
        return target, way

    def _prepared(self, aimed: Aimed, approvals: Approvals, reference: str | None, given: Any) -> Preparation:
        from headwater.connect.admission import admit_use
        from headwater.connect.advice import advised
        from headwater.connect.choosing import usable
        from headwater.store.sqlite import connections

        check_clock(configuration_of(self._settings))
        target = aimed.target
        with connections.looked_at(self._settings.database_path) as registry, advised(registry, target):
            connection = usable(registry, target, reference, clock.millis())
            admit_use(connection, target, clock.millis())
        return self.permitted(aimed, approvals, connection, given)

    @contextmanager
    def _opened(self) -> Iterator[Approvals]:
        with opened(self._settings.database_path, os.geteuid()) as approvals:
            yield approvals

    @contextmanager
    def _looked_at(self) -> Iterator[Approvals]:
        with looked_at(self._settings.database_path, os.geteuid()) as approvals:
            yield approvals

    def _custody(self, configuration: Configuration) -> Any:
        from headwater.joining.reaching import custody_of

        return custody_of(self._settings, configuration, self._passphrase)[0]


_KEY_INIT: Final = "headwater approvals key-init"


def place_of(target: Target, connection: Connection) -> Place:
    """Return where a write goes."""
    return Place(
        instance_id=target.instance_id,
        configuration_revision=target.configuration_revision,
        connection=connection.reference,
        connection_revision=connection.revision,
        profile=connection.profile,
    )


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Have a refusal of arguments that names none say which it was."""
    try:
        yield
    except HeadwaterError as error:
        if error.code == "invalid_input":
            error.data.setdefault("field", field)
        raise


def _selected(target: Target, way: Way, revision: str) -> Selected:
    return Selected(target.configuration_revision, revision, way.executable(), LOCAL)


def _told_attempt(attempt: Attempt, at_ms: int) -> Shown:
    told: Shown = {
        "attempt": attempt.attempt_id,
        "at": clock.from_micros(at_ms * 1000),
        "operation": attempt.operation,
        "connection": attempt.connection,
        "request_id": attempt.request_id,
        "classification": "unknown" if attempt.state == "dispatching" else attempt.classification,
        "is_open": attempt.state in ("prepared", "dispatching"),
    }
    if attempt.cause is not None:
        told["cause"] = {"code": attempt.cause.code, "stage": attempt.cause.stage}
    return told
