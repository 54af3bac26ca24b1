"""Acme Tickets: an account, what is offered there, and buying it."""

from collections.abc import Mapping
from typing import Any

from headwater.sdk.integration import Account, Context, Envelope, Integration, Page, operation


class AcmeTickets(Integration):
    """Each hook is one attempt. What it cannot do, `accepted` says with a code of the list."""

    def start_auth(self, ctx: Context, method: str, fields: Mapping[str, str]) -> Envelope:
        return Envelope(fields["token"])

    def get_account(self, ctx: Context) -> Account:
        told = self._get(ctx, "/me")
        return Account(told["id"], "acme.user", told["name"])

    def list_groups(self, ctx: Context, cursor: str | None) -> Page:
        return self._page(ctx, "groups", cursor)

    def list_events(self, ctx: Context, cursor: str | None) -> Page:
        return self._page(ctx, "events", cursor)

    def list_ticket_inventory(self, ctx: Context, cursor: str | None) -> Page:
        return self._page(ctx, "tickets", cursor)

    @operation(
        "tickets.left",
        description="How many tickets of an event are left, of all kinds together.",
        input={
            "type": "object",
            "properties": {"event": {"type": "string"}},
            "required": ["event"],
            "additionalProperties": False,
        },
        output={"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]},
    )
    async def left(self, ctx: Context, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Go through every page: the service has no question for it."""
        left, cursor = 0, ""
        while cursor is not None:
            page = self._get(ctx, f"/tickets?cursor={cursor}")
            left += sum(one["left"] for one in page["items"] if one["event"] == given["event"])
            cursor = page["next"]
        return {"left": left}

    def quote(self, ctx: Context, order: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._post(ctx, "/quotes", order)

    def fulfill(self, ctx: Context, order: Mapping[str, Any], idempotency_key: str) -> Mapping[str, Any]:
        return self._post(ctx, "/orders", {**order, "reference": idempotency_key})

    def get_fulfillment(self, ctx: Context, reference: str) -> Mapping[str, Any]:
        return self._get(ctx, f"/orders/{reference}")

    def disconnect(self, ctx: Context) -> None:
        self._post(ctx, "/sign-out", {})

    def _page(self, ctx: Context, kind: str, cursor: str | None) -> Page:
        told = self._get(ctx, f"/{kind}?cursor={cursor or ''}")
        return Page(told["items"], told["next"], complete=told["next"] is None)

    def _get(self, ctx: Context, path: str) -> Mapping[str, Any]:
        told: Mapping[str, Any] = ctx.http.request("GET", path, headers=self._headers(ctx)).accepted().json()
        return told

    def _post(self, ctx: Context, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = ctx.http.request("POST", path, headers=self._headers(ctx), json=dict(body))
        told: Mapping[str, Any] = answer.accepted().json()
        return told

    def _headers(self, ctx: Context) -> Mapping[str, str]:
        return {"authorization": f"Bearer {ctx.credential.access_token}"} if ctx.credential else {}
