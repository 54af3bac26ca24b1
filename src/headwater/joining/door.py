"""The door from a run to the credential of its instance: what is connected is answered, and nobody is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.collect.hints import action_of
from headwater.errors import HeadwaterError
from headwater.wire.messages import Interaction

if TYPE_CHECKING:
    from headwater.collect.ports import Outcome, Respondent
    from headwater.connect.envelope import Credential
    from headwater.connect.using import Used
    from headwater.joining.connecting import Connecting


class Door:
    """Answers a connector's question for credentials from custody. Whatever else it asks goes to a person."""

    def __init__(self, connecting: Connecting, instance: str) -> None:
        self._connecting = connecting
        self._instance = instance
        self._person: Respondent | None = None
        self._used: Used | None = None

    def before(self, person: Respondent | None) -> Door:
        """Stand before a person who may answer what custody does not."""
        self._person = person
        return self

    async def answer(self, question: Interaction) -> Mapping[str, Any] | None:
        """See `Respondent.answer`. A connection that can no longer be used is declined: nothing takes its place."""
        if question.kind == "credentials":
            try:
                used = await self._connecting.credential_for(self._instance)
            except HeadwaterError:
                return None
            answer = None if used is None else answer_of(question, used.credential)
            if answer is not None:
                self._used = used
                return answer
        return None if self._person is None else await self._person.answer(question)

    def close(self, outcome: Outcome) -> None:
        """Cut the connection off where the provider refused, in this run, the credential that was handed out."""
        error = outcome.facts.error
        if self._used is not None and error is not None and action_of(error) == "refresh_credentials":
            self._connecting.mark_refused(self._used)


def answer_of(question: Interaction, credential: Credential) -> dict[str, str] | None:
    """Return what a credential has of a question's schema, None where that is not all that is required.

    A property is a field that was entered, or a member of the envelope; `token` is the access token too.
    """
    schema = question.schema if isinstance(question.schema, dict) else {}
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return None
    envelope = credential.envelope
    known = {"access_token": envelope.access_token, "token": envelope.access_token, **credential.fields}
    if not all(isinstance(name, str) and name in known for name in required):
        return None
    return {name: known[name].text() for name in properties if name in known} or None
