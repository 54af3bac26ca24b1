"""An integration as an author writes it: tickets of a provider that speaks JSON."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from headwater.sdk.integration import Account, Challenge, Context, Envelope, Field, Integration, Page


class AcmeTickets(Integration):
    def start_auth(self, ctx: Context, method: str, fields: Mapping[str, str]) -> Challenge | Envelope:
        if method == "token":
            return Envelope(fields["token"])
        answer = ctx.http.request("POST", f"/sign-in/{method}", json=dict(fields)).accepted().json()
        if "challenge" in answer:
            code = Field("code", "The code", "token")
            return Challenge("code", [code], target=answer["target"], upstream={"id": answer["challenge"]})
        return self._envelope(ctx, answer)

    def complete_auth(
        self, ctx: Context, method: str, state: Mapping[str, Any], answer: Mapping[str, str]
    ) -> Challenge | Envelope:
        told = ctx.http.request("POST", "/code", json={"challenge": state["id"], **answer}).accepted().json()
        return self._envelope(ctx, told)

    async def refresh_credential(self, ctx: Context, envelope: Envelope) -> Envelope:
        told = ctx.http.request("POST", "/refresh", json={"refresh_token": envelope.refresh_token})
        return self._envelope(ctx, told.accepted().json())

    def get_account(self, ctx: Context) -> Account:
        told = self._get(ctx, "/me")
        return Account(told["id"], "acme.user", told["name"])

    def list_groups(self, ctx: Context, cursor: str | None) -> Page:
        return self._page(ctx, "groups", cursor)

    def list_events(self, ctx: Context, cursor: str | None) -> Page:
        return self._page(ctx, "events", cursor)

    def list_ticket_inventory(self, ctx: Context, cursor: str | None) -> Page:
        return self._page(ctx, "tickets", cursor)

    def disconnect(self, ctx: Context) -> None:
        ctx.http.request("POST", "/sign-out", headers=self._headers(ctx)).accepted()

    def _page(self, ctx: Context, kind: str, cursor: str | None) -> Page:
        told = self._get(ctx, f"/{kind}?cursor={cursor or ''}")
        return Page(told["items"], told["next"], told["next"] is None)

    def _get(self, ctx: Context, path: str) -> Any:
        return ctx.http.request("GET", path, headers=self._headers(ctx)).accepted().json()

    def _headers(self, ctx: Context) -> Mapping[str, str]:
        assert ctx.credential is not None
        return {"authorization": f"Bearer {ctx.credential.access_token}"}

    def _envelope(self, ctx: Context, told: Mapping[str, Any]) -> Envelope:
        expires_at: datetime = ctx.clock() + timedelta(seconds=told["expires_in"])
        return Envelope(told["token"], "bearer", expires_at, told.get("renewal"))
