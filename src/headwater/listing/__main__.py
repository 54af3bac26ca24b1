"""Where the program begins: the lists of the folder that it is started in."""

from pathlib import Path
from typing import Any, Final

from headwater.adapters.sending import below
from headwater.listing.calling import Calls, Line
from headwater.listing.walk import Walk
from headwater.manifest.integration import Integration, read_integration
from headwater.outbound.client import Client, Reach
from headwater.sdk import Connector, RunContext, StreamRun
from headwater.sdk.context import Provider
from headwater.sdk.hooks import implemented, loaded
from headwater.sdk.integration import Envelope

_QUESTION: Final = {
    "type": "object",
    "properties": {"access_token": {"type": "string", "title": "Access token", "format": "password", "minLength": 1}},
    "required": ["access_token"],
}


class Listing:
    """The lists of one folder."""

    def __init__(self, folder: Path) -> None:
        self._manifest = read_integration((folder / "integration.json").read_bytes())
        self._kind = loaded(folder)
        self._calls: Calls | None = None
        self.connector = Connector(folder)
        for name, stream in self.connector.declaration.streams.items():
            if f"list_{name}" not in implemented(self._kind) or not stream.primary_key:
                raise SystemExit(f"the stream {name} needs a primary_key, and the hook list_{name}")
            self.connector.stream(name)(self._list)

    def _list(self, stream: StreamRun) -> None:
        if self._calls is None:
            self._calls = _calls(stream.run, self._manifest, self._kind())
        calls = self._calls
        Walk(stream, lambda cursor: calls.page(f"list_{stream.name}", cursor)).through()


def _calls(run: RunContext, manifest: Integration, hooks: Any) -> Calls:
    """Return what calls the hooks: for the instance's account, at its endpoint.

    An endpoint that is an option was written by the instance's owner: so it may be an address of this machine.
    """
    given = run.options.get("endpoint")
    endpoint = given or f"https://{manifest.provider}"
    reach = Reach(frozenset(manifest.hosts) or None, private=bool(given))
    asks = "credentials" in run.declaration.human_interaction
    answer = run.ask("credentials", f"Sign in to {manifest.display_name}.", _QUESTION) if asks else {}
    credential = Envelope(str(answer["access_token"])) if asks else None
    return Calls(hooks, Line(below(endpoint, Client(reach))), Provider(manifest.provider, endpoint), credential)


if __name__ == "__main__":
    Listing(Path.cwd()).connector.run()
