"""Where an IMAP server is, and a connection to it: over TLS, unless its owner says otherwise."""

import imaplib
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from headwater.sdk import Fail

TIMEOUT_SECONDS: Final = 60.0
MESSAGE_BYTES: Final = 64 * 1024 * 1024
# A server that says a message is smaller than it is gets this much more, and then the connection ends.
LITERAL_BYTES: Final = 2 * MESSAGE_BYTES

_PORTS: Final = {"tls": 993, "starttls": 143, "none": 143}
_OVER_TLS: Final = {"https", "imaps"}


class _Bounded(imaplib.IMAP4):
    """Takes no literal that is longer than any that was asked for."""

    def read(self, size: int) -> bytes:
        if size > LITERAL_BYTES:
            raise self.abort("literal too long")
        return super().read(size)


class _BoundedTls(_Bounded, imaplib.IMAP4_SSL):
    """The same over TLS."""


@contextmanager
def told() -> Iterator[None]:
    """End the run in plain words where the connection fails. What the server said is not repeated."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message or "it cannot be verified"
        message = f"The server's certificate is not trusted: {why}."
        raise Fail(message, retryable=False, hint="manual_action_required") from None
    except (imaplib.IMAP4.abort, OSError) as error:
        why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        raise Fail(f"The server cannot be reached, or hung up{why}.", hint="retry_by_runtime") from None
    except (imaplib.IMAP4.error, UnicodeDecodeError):
        raise Fail("The server and this connector do not understand each other.", hint="unknown") from None


@dataclass(frozen=True)
class Server:
    """A server, and how the way to it is made safe. `ca` are certificates in PEM; None stands for the system's."""

    host: str
    port: int
    security: str = "tls"
    ca: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Server":
        """Read the options: an `endpoint`, which is always over TLS, or else `host`, `port` and `security`."""
        endpoint, host, security = options.get("endpoint"), options.get("host"), options.get("security", "tls")
        port = options.get("port")
        if isinstance(endpoint, str):
            host, port, security = *_parts(endpoint), "tls"
        if not isinstance(host, str) or not host or security not in _PORTS:
            raise _wrong("Set the option `host` to the mail server.")
        return cls(host, int(port or _PORTS[security]), security, options.get("ca"))

    def connected(self) -> imaplib.IMAP4:
        """Connect; nobody is signed in yet."""
        if self.security == "none":
            return _Bounded(self.host, self.port, timeout=TIMEOUT_SECONDS)
        try:
            context = ssl.create_default_context(cadata=self.ca)
        except (ssl.SSLError, ValueError):
            raise _wrong("The option `ca` is no certificate.") from None
        if self.security == "tls":
            return _BoundedTls(self.host, self.port, ssl_context=context, timeout=TIMEOUT_SECONDS)
        client = _Bounded(self.host, self.port, timeout=TIMEOUT_SECONDS)
        if "STARTTLS" not in client.capabilities:
            raise _wrong("The server offers no STARTTLS.")
        client.starttls(context)
        return client

    def signed_in(self, username: str, password: str) -> imaplib.IMAP4:
        """Connect and sign in. Both are sent once, and only if the server takes them on such a connection."""
        if not username or not password or "\0" in username + password:
            raise Fail("A user name and a password are needed.", retryable=False, hint="refresh_credentials")
        client = self.connected()
        if "LOGINDISABLED" in client.capabilities:
            raise _wrong("The server takes no password on this connection: set `security` to `tls` or `starttls`.")
        try:
            if "AUTH=PLAIN" in client.capabilities:
                client.authenticate("PLAIN", lambda _: f"\0{username}\0{password}".encode())
            else:
                client.login(username, password)
        except client.abort:
            raise
        except (client.error, UnicodeError):
            message = "The server did not accept the user name and password."
            raise Fail(message, retryable=False, hint="refresh_credentials") from None
        _, answer = client.capability()
        client.capabilities = tuple(answer[-1].decode("ascii", "replace").upper().split())
        return client


def _parts(endpoint: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(endpoint)
        bare = not (parts.username or parts.password or parts.path.strip("/") or parts.query or parts.fragment)
        if parts.scheme in _OVER_TLS and bare:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise _wrong("The option `endpoint` is no address such as https://imap.example.org:993.")


def _wrong(message: str) -> Fail:
    return Fail(message, retryable=False, hint="manual_action_required")
