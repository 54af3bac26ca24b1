"""What the author of an integration imports: the hooks, and the values that they take and return (spec/004).

    from headwater.sdk.integration import Account, Context, Envelope, Integration

    class Acme(Integration):
        def start_auth(self, ctx, method, fields):
            answer = ctx.http.request("POST", "/login", json={"user": fields["user"], "password": fields["password"]})
            return Envelope(access_token=answer.json()["token"])

        def get_account(self, ctx):
            answer = ctx.http.request("GET", "/me", headers={"Authorization": f"Bearer {ctx.credential.access_token}"})
            return Account(id=answer.json()["id"], kind="acme.user")

Beside the hooks stand operations, which a person or a program may ask of the service:

        @operation("tickets.show", description="One ticket.", input={...}, output={...})
        async def show(self, ctx, given):
            ...

Each hook, and each call of an operation, is one attempt with a deadline. It stores nothing, waits for nothing and never
repeats itself: the host does. Either may be a plain function or a coroutine. What it prints goes to a log, and never to
a protocol.
"""

from collections.abc import Mapping
from typing import Any

from headwater.sdk.context import Context
from headwater.sdk.credentials import Account, Challenge, Envelope, Field, Page
from headwater.sdk.operations import operation
from headwater.sdk.refusals import Refused

__all__ = ["Account", "Challenge", "Context", "Envelope", "Field", "Integration", "Page", "Refused", "operation"]


class Integration:
    """The hooks. Override those of the capabilities that the manifest declares, and no others.

    A hook that cannot do what it was asked raises `Refused` with a code of the closed list.
    """

    def start_auth(self, ctx: Context, method: str, fields: Mapping[str, str]) -> Challenge | Envelope | Any:
        """Begin a sign-in by one of the manifest's methods, with checked fields."""
        raise NotImplementedError

    def complete_auth(
        self, ctx: Context, method: str, state: Mapping[str, Any], answer: Mapping[str, str]
    ) -> Challenge | Envelope | Any:
        """Go on behind a challenge. `state` is its `upstream`. None where a device's owner has not consented yet."""
        raise NotImplementedError

    def refresh_credential(self, ctx: Context, envelope: Envelope) -> Envelope | Any:
        """Exchange a credential for a newer one; tell `credential_invalid` from what passes."""
        raise NotImplementedError

    def get_account(self, ctx: Context) -> Account | Any:
        """Say whose `ctx.credential` is."""
        raise NotImplementedError

    def list_groups(self, ctx: Context, cursor: str | None) -> Page | Any:
        """Return one page of organizers, venues and teams."""
        raise NotImplementedError

    def list_events(self, ctx: Context, cursor: str | None) -> Page | Any:
        """Return one page of events."""
        raise NotImplementedError

    def list_ticket_inventory(self, ctx: Context, cursor: str | None) -> Page | Any:
        """Return one page of ticket types with their prices and what is left."""
        raise NotImplementedError

    def configure(self, ctx: Context, values: Mapping[str, Any]) -> Mapping[str, Any] | Any:
        """Check settings, then apply them all or none; return those that hold now."""
        raise NotImplementedError

    def quote(self, ctx: Context, order: Mapping[str, Any]) -> Mapping[str, Any] | Any:
        """Return a price for an order, and how long it holds."""
        raise NotImplementedError

    def fulfill(self, ctx: Context, order: Mapping[str, Any], idempotency_key: str) -> Mapping[str, Any] | Any:
        """Place an order, sent at most once."""
        raise NotImplementedError

    def get_fulfillment(self, ctx: Context, reference: str) -> Mapping[str, Any] | Any:
        """Read what became of an order, by the reference it was placed under."""
        raise NotImplementedError

    def cancel_fulfillment(self, ctx: Context, reference: str) -> Mapping[str, Any] | Any:
        """Take an order back."""
        raise NotImplementedError

    def verify_webhook(self, ctx: Context, headers: Mapping[str, str], body: bytes) -> bool | Any:
        """Say whether a webhook is one to look at. The host has verified its signature and its time already."""
        raise NotImplementedError

    def map_webhook(self, ctx: Context, body: bytes) -> Mapping[str, Any] | Any:
        """Say whose a webhook is: `{"account": id}`, or None there. Nothing else counts, and no credential is there."""
        raise NotImplementedError

    def disconnect(self, ctx: Context) -> Any:
        """Revoke `ctx.credential` at the provider."""
        raise NotImplementedError
