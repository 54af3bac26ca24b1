"""The hooks of an integration, tried: signing in, the account, the lists, and a service that fails."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

from headwater.adapters.authenticating import Acting, Hooked
from headwater.adapters.hosting import Adapter
from headwater.checking.recorded import ENDPOINT, Entered, Fault, Recorded, Recording
from headwater.connect.envelope import Credential, Envelope
from headwater.connect.failures import AuthFailure
from headwater.connect.ports import Challenge
from headwater.manifest.auth import Method
from headwater.manifest.declaration import Declaration
from headwater.manifest.integration import Integration
from headwater.manifest.reading import read
from headwater.manifest.schemas import compile_schema
from headwater.secret import Secret

_PAGES: Final = 50
_FAULTS: Final[Mapping[str, tuple[Fault, str]]] = {
    "INT-191": (Fault(401, b"{}"), "credential_invalid"),
    "INT-283": (Fault(503, b"<html>"), "provider_unavailable"),
    "INT-452": (Fault(200, b"<html>Sign in</html>"), "provider_protocol_error"),
}


class Trials:
    """What the hooks of one integration do. `failed` are clauses with what was seen; `shown`, all that were judged."""

    def __init__(self, folder: Path, integration: Integration, adapter: Adapter, known: Recording) -> None:
        self._integration, self._adapter, self._known = integration, adapter, known
        self._streams = _declared(folder)
        self._service = Recorded(known, frozenset(integration.hosts))
        acting = Acting("certify", "certify", "certify", integration.provider, ENDPOINT)
        self._hooked = Hooked(lambda: nullcontext(adapter), self._service, acting, _uncounted)
        self.failed: list[tuple[str, str]] = []
        self.shown: set[str] = {"INT-492", "INT-493"}

    def fail(self, clause: str, seen: str) -> None:
        """Note that a clause fails."""
        self.failed.append((clause, seen))

    async def run(self) -> None:
        """Try everything that the recording allows."""
        for key, entered in self._known.methods.items():
            method = self._integration.methods.get(key)
            if method is None or method.scheme != "hooks":
                continue
            envelope = await self._signed_in(method, entered)
            if envelope is not None:
                for hook in sorted(name for name in self._adapter.hooks if name.startswith("list_")):
                    await self._walk(hook, envelope)
                await self._faulty(method, envelope)
        for host in dict.fromkeys(self._service.strays):
            self.fail("INT-493", f"A hook asked for {host}, which the manifest does not name.")

    async def _signed_in(self, method: Method, entered: Entered) -> Envelope | None:
        self.shown |= {"INT-195", "INT-196"}
        fields = {name: Secret(value) for name, value in entered.fields.items()}
        with self._judged("INT-195", f"Signing in by {method.key}"):
            given = await self._hooked.start(method, fields)
            if isinstance(given, Challenge):
                answer = {name: Secret(value) for name, value in entered.answer.items()}
                after = await self._hooked.complete(method, fields, given, answer)
                return after if isinstance(after, Envelope) else None
            return given
        return None

    async def _walk(self, hook: str, envelope: Envelope) -> None:
        """Walk one list to its end, and hold its items to the schema of its stream."""
        self.shown |= {"INT-334", "INT-452"}
        with self._judged("INT-334", hook):
            cursor, asked = None, {None}
            for _ in range(_PAGES):
                page = await self._hooked.page(hook, cursor, envelope)
                self._fit(hook.removeprefix("list_"), page["items"])
                if page["complete"]:
                    return
                cursor = page["next"]
                if cursor in asked:
                    break
                asked.add(cursor)
            self.fail("INT-334", f"{hook} does not come to a complete page.")

    def _fit(self, name: str, items: Any) -> None:
        stream = self._streams.get(name)
        if stream is None:
            self.fail("INT-452", f"manifest.json has no stream {name}.")
            return
        validator = compile_schema(stream.schema or {})
        bad = [number for number, item in enumerate(items) if not validator.is_valid(item)]
        if bad:
            self.fail("INT-452", f"Item {bad[0]} of a page of {name} does not fit its schema.")

    async def _faulty(self, method: Method, envelope: Envelope) -> None:
        """See what the account hook makes of a service that refuses, is down, or answers something else."""
        for clause, (fault, wanted) in _FAULTS.items():
            self.shown.add(clause)
            self._service.fault = fault
            try:
                await self._hooked.probe(method, Credential(envelope))
                self.fail(clause, f"get_account succeeds where the service answers with status {fault.status}.")
            except AuthFailure as failure:
                if failure.code != wanted:
                    self.fail(clause, f"get_account says {failure.code} where it is {wanted}.")
            finally:
                self._service.fault = None

    @contextmanager
    def _judged(self, clause: str, what: str) -> Iterator[None]:
        try:
            yield
        except AuthFailure as failure:
            late = failure.code == "provider_timeout"
            self.fail("INT-492" if late else clause, f"{what} ended with {failure.code}.")


def _declared(folder: Path) -> Mapping[str, Any]:
    declaration: Declaration = read((folder / "manifest.json").read_bytes())
    return declaration.streams


async def _uncounted() -> None:
    """Count no attempts: nobody is asked."""
