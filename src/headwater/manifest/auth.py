"""What a connector declares of signing in: its methods, their fields, and how a credential is sent and probed.

A method is spec/004's auth method and, on the command line, spec/002's profile: its key is the profile's id.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, to_builtins

Flow = Literal["token", "password", "verification_code", "oauth"]
FieldType = Literal["text", "email", "tel", "url", "password", "token"]
ClientAuthentication = Literal["basic", "post"]
Scheme = Literal["hooks", "token", "basic", "oauth2_grant", "oauth2_client_credentials"]

EVIDENCE_LIFETIME_MS = 60_000
"""How long a probe counts where a method does not say (facts-cli 1.1)."""


class Field(Struct, frozen=True):
    """One thing a person enters. `message` is the sentence for a value that does not fit; it holds no value."""

    name: str
    label: str
    type: FieldType
    required: bool = False
    min_length: int | None = None
    pattern: str | None = None
    message: str | None = None

    @property
    def is_secret(self) -> bool:
        """Whether what is entered may never be shown or kept outside custody."""
        return self.type in ("password", "token")


class Identity(Struct, frozen=True):
    """How the account of a credential is found.

    `api`: GET `path` at the endpoint, the subject at the JSON pointer `subject`. `id_token`: the `sub` of a checked
    ID token. `configuration`: GET `path` must answer 200, and the instance's id is the subject.
    """

    source: Literal["api", "id_token", "configuration"]
    kind: str
    path: str = ""
    subject: str = ""
    display: str = ""


class OAuth(Struct, frozen=True):
    """An OAuth 2 client. Without `client_id` the host's Provider record has it; `confidential` needs a secret.

    `issuer` is who signs ID tokens; without it, whoever has the origin of the token endpoint. `client_authentication`
    says how a secret is sent: in the header, or in the form (RFC 6749 2.3.1).
    """

    token_url: str
    authorize_url: str | None = None
    device_authorization_url: str | None = None
    revocation_url: str | None = None
    client_id: str | None = None
    confidential: bool = False
    requested_scopes: tuple[str, ...] = ()
    minimum_scopes: tuple[str, ...] = ()
    issuer: str | None = None
    client_authentication: ClientAuthentication = "basic"


class Method(Struct, frozen=True):
    """One way to sign in. With the scheme `hooks` the integration's code does it, else the host by declaration."""

    key: str
    label: str
    flow: Flow
    fields: tuple[Field, ...] = ()
    scheme: Scheme = "hooks"
    header: str = "Authorization"
    prefix: str = "Bearer"
    identity: Identity | None = None
    oauth: OAuth | None = None
    evidence_lifetime_ms: int = EVIDENCE_LIFETIME_MS

    @property
    def authentication(self) -> Mapping[str, Any]:
        """The declaration apart from its labels and its evidence lifetime: a change of it is another identity."""
        whole: dict[str, Any] = to_builtins(self)
        for name in ("label", "evidence_lifetime_ms"):
            del whole[name]
        if self.oauth is not None and self.oauth.client_authentication == "basic":
            del whole["oauth"]["client_authentication"]  # what was said before there was a choice is still the same
        whole["fields"] = [{"name": field.name, "type": field.type} for field in self.fields]
        return whole
