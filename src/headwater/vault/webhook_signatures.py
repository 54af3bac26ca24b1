"""The signatures of webhooks: HMAC-SHA256 under a secret that the provider has too, compared in constant time."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable

from headwater import clock
from headwater.secret import Secret

_PREFIX = b"whsec_"
_BYTES = 32


def new_secret() -> Secret:
    """Return a secret that nobody guesses, in the form in which it is given to a provider."""
    return Secret(_PREFIX + b64encode(clock.entropy(_BYTES)))


def is_signed(secret: Secret, content: bytes, signatures: Iterable[str]) -> bool:
    """Whether one of the signatures, each as `v1,BASE64`, is that of the content."""
    right = b"v1," + b64encode(hmac.digest(_key(secret), content, "sha256"))
    fits = [hmac.compare_digest(one.encode(), right) for one in signatures]
    return any(fits)


def _key(secret: Secret) -> bytes:
    """Return the bytes that a secret stands for: base64 behind `whsec_`, else those of the text itself."""
    text = secret.reveal()
    if text.startswith(_PREFIX):
        try:
            return b64decode(text.removeprefix(_PREFIX), validate=True)
        except ValueError:
            pass
    return text
