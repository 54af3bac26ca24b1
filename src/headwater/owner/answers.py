"""What an owner answers: how an instance stands, its stop, a sign-in, an operation, what it hands out and copies."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from headwater import clock, limits
from headwater.adapters.authenticating import Acting, Hooked
from headwater.adapters.crossing import of_failure, of_result, of_step, to_challenge, to_credential, to_secrets
from headwater.adapters.hosting import Adapter
from headwater.catalog.certificates import certificates
from headwater.catalog.instances import Instances
from headwater.configuration.selecting import Selection
from headwater.connect.failures import AuthFailure
from headwater.errors import refuse
from headwater.host import Host
from headwater.link.unix import Handed
from headwater.manifest.auth import Method
from headwater.operate.description import code_revision
from headwater.outbound.client import Client, Reach
from headwater.owner.copying import copied
from headwater.owner.handing import Handing
from headwater.owner.served import Served, identified, selected
from headwater.owner.supervisor import Supervisor

Asked = Mapping[str, Any]


class Answers:
    """Answers one question at a time of each client."""

    def __init__(self, host: Host, supervisor: Supervisor, incarnation: str) -> None:
        self._host, self._supervisor, self._incarnation = host, supervisor, incarnation
        self._handing = Handing(host)

    async def to(self, asked: Asked) -> Mapping[str, Any] | Handed:
        """Answer a question, or raise the refusal of it."""
        match asked.get("want"):
            case "greet":
                return {"incarnation": self._incarnation}
            case "status":
                return {"observation": self._supervisor.observation(self._selected(asked))}
            case "stop":
                one = self._selected(asked)
                named = (asked["expected_revision"], asked["host_incarnation"], asked["child_incarnation"])
                return {"observation": await self._supervisor.stop(one, *named)}
            case "sign_in":
                return await self._step(asked)
            case "describe":
                await self._operating(asked)
                return {}
            case "operate":
                return await self._operate(asked)
            case "token":
                return await self._handing.token(asked)
            case "launch":
                return await self._handing.launch(asked)
            case "copy":
                return await copied(self._host, asked)
        raise refuse("unsupported", "The owner does not know what it was asked.", stage="admission")

    def _selected(self, asked: Asked) -> Served:
        return selected(self._host.settings, Selection(*asked["selection"]))

    async def _step(self, asked: Asked) -> Mapping[str, Any]:
        """Run one step of a sign-in by the hooks of an instance."""
        one = identified(self._host.settings, asked["instance_id"])
        if one.integration is None or asked["method"] not in one.integration.methods:
            raise refuse("unsupported", "No code signs in to this instance in that way.", stage="admission")
        adapter = await self._supervisor.adapter(one, limits.HOOK_START_SECONDS + limits.STOP_SECONDS)
        method = one.integration.methods[asked["method"]]
        try:
            return of_step(await _taken(self._hooked(one, adapter), method, asked))
        except AuthFailure as failure:
            return of_failure(failure)

    async def _operating(self, asked: Asked) -> tuple[Served, Adapter]:
        """Return an instance with the adapter that does its operations, `within` so many seconds."""
        one = identified(self._host.settings, asked["instance_id"])
        if one.integration is None:
            raise refuse("unsupported", "No code does operations of this instance.", stage="admission")
        return one, await self._supervisor.adapter(one, asked["within"], resumes=asked["resumes"])

    async def _operate(self, asked: Asked) -> Mapping[str, Any]:
        """Have an instance's code do an operation, as it was described to who asks. Raise `stale_description`."""
        until = clock.monotonic() + asked["within"]
        one, adapter = await self._operating(asked)
        if code_revision(one.connector, adapter.hello) != asked["revision"]:
            raise refuse("stale_description", safe="Nothing was sent.")
        envelope = to_credential(asked["credential"]).envelope
        try:
            given = await self._hooked(one, adapter).operate(asked["operation"], asked["given"], envelope, until)
            return of_result(given)
        except AuthFailure as failure:
            return of_failure(failure)
        except TimeoutError:
            message = "The instance's program was busy with other work."
            raise refuse("timeout", message, stage="admission", safe="Nothing was sent.") from None

    def _hooked(self, one: Served, adapter: Adapter) -> Hooked:
        assert one.integration is not None
        person = str(os.geteuid())  # one person, who is owner, acting user and team alike (INT-472)
        provider = one.integration.provider
        settings = Instances(self._host.settings.collect_path).providers().get(provider, {})
        believed = certificates(settings)
        if believed is not None:
            settings = {**settings, "ca": believed}
        acting = Acting(person, person, person, provider, one.endpoint, settings)
        hosts = frozenset(one.integration.hosts) or None
        client = Client(Reach(hosts, private=bool(one.endpoint), certificates=believed))
        return Hooked(lambda: nullcontext(adapter), client, acting, _counted)


async def _taken(hooked: Hooked, method: Method, asked: Asked) -> Any:
    match asked["step"]:
        case "start":
            return await hooked.start(method, to_secrets(asked["fields"]))
        case "complete":
            challenge, answer = to_challenge(asked["challenge"]), to_secrets(asked["answer"])
            return await hooked.complete(method, to_secrets(asked["fields"]), challenge, answer)
        case "refresh":
            return await hooked.refresh(method, to_credential(asked["credential"]))
        case "probe":
            return await hooked.probe(method, to_credential(asked["credential"]))
        case "disconnect":
            return await hooked.disconnect(method, to_credential(asked["credential"]))
        case "configure":
            return await hooked.configure(to_credential(asked["credential"]), asked["values"])
        case "webhook":
            return await hooked.webhook(asked["headers"], asked["body"])
    raise refuse("unsupported", "No code signs in to this instance in that way.", stage="admission")


async def _counted() -> None:
    """Count nothing more: each step was counted where it was asked for."""
