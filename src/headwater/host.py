"""The host: the one place that chooses adapters and joins them to the verbs. Every face calls this.

Modules that only collecting needs are imported when it starts, so that looking at what is stored stays quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater import clock
from headwater.errors import HeadwaterError, refuse
from headwater.settings import Settings

if TYPE_CHECKING:
    from headwater.catalog.folders import Catalog, ConnectorFolder
    from headwater.catalog.installing import Shelf
    from headwater.catalog.instances import Instance, Instances
    from headwater.checking import Report
    from headwater.checking.certifying import Certified
    from headwater.collect.gaps import Turn
    from headwater.collect.ports import Outcome, Respondent
    from headwater.collect.schedules import PastRun
    from headwater.joining.approval_keys import ApprovalKeys
    from headwater.joining.approving import Approving
    from headwater.joining.configuring import Configuring
    from headwater.joining.connecting import Connecting
    from headwater.joining.control import Question
    from headwater.joining.cursors import Cursors, StateAddress
    from headwater.joining.defining import Defining
    from headwater.joining.handing import Handing
    from headwater.joining.integrating import Integrating
    from headwater.joining.operating import Operating
    from headwater.joining.opting import Opting
    from headwater.joining.owning import Owning
    from headwater.joining.programs import CollectRequest, Program, Watching
    from headwater.joining.readiness import Readiness
    from headwater.joining.releases import Releases
    from headwater.joining.reusing import Reusing
    from headwater.joining.signing_in import SigningIn
    from headwater.joining.webhooks import Webhooks
    from headwater.joining.writing import Writes
    from headwater.secret import Secret
    from headwater.store.sqlite.cursors import StreamState
    from headwater.store.sqlite.reading import Reader
    from headwater.store.sqlite.undo import Undone
    from headwater.store.starting import StoreProcess

ADHOC = "adhoc"


class Host:
    """One Headwater on one machine. `passphrase` asks a person for the one of a sealed file, by a label."""

    def __init__(self, settings: Settings, passphrase: Callable[[str], Secret] | None = None) -> None:
        self.settings = settings
        self._passphrase = passphrase
        self._store: StoreProcess | None = None

    @property
    def configuring(self) -> Configuring:
        """The configuration, to be made and looked at."""
        from headwater.joining.configuring import Configuring

        return Configuring(self.settings)

    def readiness(self) -> Readiness:
        """Look at what this machine has, and change nothing."""
        from headwater.joining.readiness import readiness

        return readiness(self.settings)

    def note_crash(self, error: BaseException) -> Path:
        """Note where in Headwater something went wrong, and nothing else of it. See `store.crashes`."""
        from headwater.store.crashes import note_crash
        from headwater.store.locks import private

        private(self.settings.state_dir)
        return note_crash(self.settings.crashes_dir, error)

    # What can be run.

    @property
    def catalog(self) -> Catalog:
        """The connectors of this machine."""
        from headwater.catalog.folders import Catalog

        return Catalog(self.settings.connectors_dir)

    @contextmanager
    def shelf(self, name: str | None = None) -> Iterator[Shelf]:
        """Open the added connectors for a change, one at a time; `name` is refused while a run of it is active."""
        from headwater.catalog.installing import Shelf
        from headwater.store.locks import exclusive, private

        private(self.settings.state_dir)
        shelf = Shelf(self.settings.connectors_dir)
        with ExitStack() as locks:
            locks.enter_context(exclusive(self.settings.locks_dir / "connectors.lock", "Another change is under way."))
            if name is not None:
                shelf.find(name)
                for lock in sorted(self.settings.locks_dir.glob(f"{name}--*.lock")):
                    locks.enter_context(exclusive(lock, "A run of this connector is active."))
            yield shelf

    @property
    def instances(self) -> Instances:
        """The instances that were set up."""
        from headwater.catalog.instances import Instances

        return Instances(self.settings.collect_path)

    def set_up(
        self, name: str, settings: Sequence[str], folder: Path | None = None, bindings: Sequence[str] = ()
    ) -> Instance:
        """Make an instance from `option=value` and `binding=object` texts, over what is remembered of it, and keep it.

        Raise `invalid_options` with every fault; nothing is remembered then.
        """
        from msgspec.structs import replace

        from headwater.catalog.extensions import typed_extensions
        from headwater.catalog.instances import Instance, valid_name

        known = self.instances.all().get(valid_name(name), Instance(name))
        instance = replace(known, folder=folder.resolve()) if folder is not None else known
        placed = self._placed(instance)
        options = self._folder_of(instance).checked_options({**instance.options, **placed}, settings)
        if any(options[name] != value for name, value in placed.items()):
            message = (
                "The configuration gives this instance its endpoint; another one takes an instance of another name."
            )
            raise refuse("invalid_options", message, safe="Nothing was started.")
        options = {name: value for name, value in options.items() if name not in placed}
        instance = replace(instance, options=options, bindings={**known.bindings, **typed_extensions(bindings)})
        if instance != known or name not in self.instances.all():
            self.instances.add(instance)
        return instance

    def program(self, instance: Instance) -> Program:
        """Return the program of an instance.

        Raise `connector_changed` where an added connector is not as it was, `invalid_configuration` for a disabled one.
        """
        from headwater.joining.configured import believed_at, check_enabled
        from headwater.joining.programs import Program

        check_enabled(self.settings, instance.connector)
        folder = self._folder_of(instance)
        folder.verify()
        connector, _, name = instance.name.partition("/")
        package = folder.package
        options, environment = {**instance.options, **self._placed(instance)}, package.environment
        told = (options, environment, instance.streams, package.filled_variables(options), package.compatibility)
        offered, believed = instance.bindings, believed_at(self.settings, folder.integration)
        named = (folder.declaration, folder.command, connector, name, folder.path)
        return Program(*named, *told, bindings=offered, certificates=believed)

    def program_of(self, manifest: bytes, command: Sequence[str]) -> Program:
        """Return an ad hoc program: any command that speaks the profile, under a manifest."""
        from headwater.joining.programs import Program
        from headwater.manifest.reading import read

        declaration = read(manifest)
        return Program(declaration, command, declaration.short_name, ADHOC)

    def _placed(self, instance: Instance) -> dict[str, str]:
        from headwater.joining.configured import placed_options

        return placed_options(self.settings, instance.name, self._folder_of(instance))

    def _folder_of(self, instance: Instance) -> ConnectorFolder:
        from headwater.joining.configured import connector_of

        return connector_of(self.settings, instance.connector, instance)

    async def check(
        self,
        path: Path,
        settings: Sequence[str],
        answers: Callable[[], Respondent] | None = None,
        *,
        packs: Sequence[str] = (),
        seed: int | None = None,
    ) -> Report:
        """Try a connector folder without storing anything; return what that shows, a finding a clause.

        Options come from `fixtures/options.json` in the folder, then from `option=value` texts. `answers` makes
        the respondent of each run. `packs` are all of them by default; `seed` is drawn where none is given.
        """
        from headwater.catalog.folders import folder_at
        from headwater.checking import check

        folder = folder_at(path)
        options = folder.checked_options(folder.fixture("options"), settings)
        drawn, hidden = clock.seed() if seed is None else seed, self.settings.private
        return await check(folder, options, answers, packs=packs, seed=drawn, hidden=hidden)

    async def certify(self, path: Path) -> list[Certified]:
        """Judge the integration in a folder, a row a clause. Nothing is sent or stored."""
        from headwater.catalog.folders import folder_at
        from headwater.checking.certifying import certify

        return await certify(folder_at(path).path, self.settings.private)

    @property
    def owning(self) -> Owning:
        """The owner of the state directory."""
        from headwater.joining.owning import Owning

        return Owning(self.settings, self.configuring)

    @property
    def releases(self) -> Releases:
        """The releases of definitions."""
        from headwater.joining.releases import Releases

        return Releases(self.settings)

    @property
    def opting(self) -> Opting:
        """Which instances are served by a release of definitions."""
        from headwater.joining.opting import Opting

        return Opting(self.settings)

    # Collecting.

    def expect_to_collect(self) -> None:
        """Start a store ahead: it will be there when the run is planned. Whatever prevents the run ends it."""
        from headwater.store.starting import StoreProcess

        self._store = StoreProcess()

    async def collect(self, request: CollectRequest, watching: Watching) -> Outcome:
        """Run once, and try due gaps again. See `Collecting.collect`."""
        from headwater.joining.collecting import Collecting

        store, self._store = self._store, None
        return await Collecting(self.settings, store, self._passphrase).collect(request, watching)

    async def retry_gaps(self, request: CollectRequest, turn: Turn, watching: Watching) -> Outcome | None:
        """Try gaps again. See `Collecting.retry_gaps`."""
        from headwater.joining.collecting import Collecting

        return await Collecting(self.settings, passphrase=self._passphrase).retry_gaps(request, turn, watching)

    def questions(self) -> list[Question]:
        """Return the questions that live runs wait with."""
        from headwater.joining.control import questions

        return questions(self.settings.live_dir)

    def answer(self, question_id: str, data: Mapping[str, Any] | None) -> bool:
        """Answer an open question, or decline it with None; False where it is not open any more (CP-708)."""
        from headwater.joining.control import answer

        return answer(self.settings.live_dir, question_id, data)

    def cancel(self, run_id: str) -> bool:
        """End a live run as cancelled; False where it is not live."""
        from headwater.joining.control import cancel

        return cancel(self.settings.live_dir, run_id)

    def undo(self, run_id: str, *, rehearse: bool = False) -> Undone:
        """Bring back the records and cursors that a run changed, or raise where a later run built on them.

        With `rehearse`, say what that would bring back and change nothing.
        """
        from headwater.store.blobs import BlobFolder
        from headwater.store.locks import Locks
        from headwater.store.sqlite.database import open_database
        from headwater.store.sqlite.ledger import InstanceName
        from headwater.store.sqlite.undo import undo

        with self.reading() as reader:
            run = reader.run(run_id)
        instance = InstanceName(run["connector_id"], *run["instance"].split("/"))
        with Locks(self.settings.locks_dir).alone(instance.chosen):
            connection = open_database(self.settings.database_path)
            try:
                blobs = BlobFolder(self.settings.blobs_dir, self.settings.spool_dir)
                return undo(connection, blobs, run["run_id"], rehearse=rehearse)
            finally:
                connection.close()

    @contextmanager
    def scheduling(self) -> Iterator[None]:
        """Be the one scheduler of this state directory, or raise `run_active`; the database is there then."""
        from headwater.store.locks import exclusive, private
        from headwater.store.sqlite.database import open_database

        private(self.settings.state_dir)
        with exclusive(self.settings.locks_dir / "scheduler.lock", "Another scheduler is active here."):
            open_database(self.settings.database_path).close()
            yield

    # Serving.

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Be the one server of this state directory, or raise `run_active`. Yield the owner's token."""
        from headwater.store.locks import exclusive, private
        from headwater.store.owner_token import owner_token
        from headwater.store.sqlite.database import open_database

        private(self.settings.state_dir)
        with exclusive(self.settings.locks_dir / "server.lock", "Another server is active here."):
            open_database(self.settings.database_path).close()
            yield owner_token(self.settings.token_path)

    def note_request(self, request_id: str, route: str, answered: str, milliseconds: int) -> None:
        """Note that a request was answered. See `store.request_log`."""
        from headwater.store.request_log import note_request

        note_request(self.settings.server_log_path, request_id, route, answered, milliseconds)

    def state_of(self, address: StateAddress) -> StreamState:
        """Return the cursors at an address. See `Cursors.read`."""
        return self._cursors(address).read(address)

    def put_state(self, address: StateAddress, cursors: Mapping[str, str]) -> StreamState:
        """Write cursors at an address. See `Cursors.put`."""
        return self._cursors(address).put(address, cursors)

    def _cursors(self, address: StateAddress) -> Cursors:
        from headwater.joining.cursors import Cursors

        declared = {}
        for instance in self.instances.all().values():
            with suppress(HeadwaterError):  # a connector that cannot be read is not the one
                declaration = self._folder_of(instance).declaration
                if declaration.connector_id == address.connector_id:
                    declared[instance.name] = declaration.streams
        return Cursors(self.settings, declared)

    # Connecting.

    @property
    def connecting(self) -> Connecting:
        """The accounts that are connected."""
        from headwater.joining.connecting import Connecting

        return Connecting(self.settings, self._passphrase)

    @property
    def operating(self) -> Operating:
        """What can be asked of the providers of connected accounts."""
        from headwater.joining.operating import Operating

        return Operating(self.settings, self.connecting)

    @property
    def approving(self) -> Approving:
        """What may be written at providers, and the approvals of it."""
        from headwater.joining.approving import Approving

        return Approving(self.settings, self.operating, self._passphrase)

    @property
    def approval_keys(self) -> ApprovalKeys:
        """The keys that sign approvals."""
        from headwater.joining.approval_keys import ApprovalKeys

        return ApprovalKeys(self.settings, self._passphrase)

    @property
    def writing(self) -> Writes:
        """What changes something at providers."""
        from headwater.joining.writing import Writes

        return Writes(self.settings, self.connecting, self.operating, self.approving)

    def defining(self, path: Path, root: Path | None) -> Defining:
        """Read a definition that a person named. See `Defining`."""
        from headwater.joining.defining import Defining

        return Defining(self.settings, path, root)

    @property
    def handing(self) -> Handing:
        """What the owner hands out of custody."""
        from headwater.joining.handing import Handing

        return Handing(self.settings)

    @property
    def reusing(self) -> Reusing:
        """What a definition's instance may be connected with instead of a credential of its own."""
        from headwater.joining.reusing import Reusing

        return Reusing(self.settings, self.connecting)

    @cached_property
    def signing_in(self) -> SigningIn:
        """Signing in by steps. The unfinished sign-ins are this object's."""
        from headwater.joining.signing_in import SigningIn

        return SigningIn(self.settings, self.connecting)

    @property
    def integrating(self) -> Integrating:
        """The common integration service."""
        from headwater.joining.integrating import Integrating

        return Integrating(self.settings, self.connecting)

    @property
    def webhooks(self) -> Webhooks:
        """What providers send by themselves."""
        from headwater.joining.webhooks import Webhooks

        return Webhooks(self.settings, self.connecting)

    # Looking.

    def past_runs(self, programs: Sequence[Program]) -> list[list[PastRun]]:
        """Return the latest whole runs of each program's instance, newest first."""
        if not self.settings.database_path.exists():
            return [[] for _ in programs]
        with self.reading() as reader:
            return [reader.past_runs(one.declaration.connector_id, one.name, one.all) for one in programs]

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Open the store for looking at it."""
        from headwater.store.sqlite.database import reading
        from headwater.store.sqlite.reading import Reader

        with reading(self.settings.database_path) as connection:
            yield Reader(connection)
