"""Which certificates are believed at a provider: those that the operator names in `collect.toml`, or else the system's.

They stand in the provider's table, as `ca`, or in the file that is its `ca_file`, in PEM. Then no others are believed.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headwater import limits
from headwater.errors import HeadwaterError, refuse
from headwater.owned import folder, plain_at

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_BODY: Final = re.compile(f"{_BEGIN}([A-Za-z0-9+/=\\s]+){_END}")
_COLUMNS: Final = 64


def certificates(provider: Mapping[str, Any]) -> str | None:
    """Return the certificates that a provider's table names, in PEM; None where it names none.

    Two tables that name the same ones give the same text, whatever stands around them. The file is read now. Raise
    `invalid_configuration` where no certificate is found, or where others could have changed the file.
    """
    if not provider.keys() & {"ca", "ca_file"}:
        return None
    if provider.keys() >= {"ca", "ca_file"}:
        raise _unusable("a provider has both `ca` and `ca_file`")
    text = provider["ca"] if "ca" in provider else _content(provider["ca_file"])
    bodies = _BODY.findall(text) if isinstance(text, str) else []
    if not bodies:
        raise _unusable("the `ca` or `ca_file` of a provider holds no certificate")
    return "".join(sorted({_even(body) for body in bodies}))


def _content(path: Any) -> str:
    named = Path(path) if isinstance(path, str) and "\0" not in path else Path()
    if not named.is_absolute():
        raise _unusable("the `ca_file` of a provider is not an absolute path")
    try:
        with folder(named.parent) as within:
            return plain_at(within, named.name, limits.CERTIFICATES_BYTES).decode()
    except (OSError, ValueError):
        message = "the `ca_file` of a provider is not a file of certificates that you or root alone can change"
        raise _unusable(message) from None


def _even(body: str) -> str:
    text = "".join(body.split())
    lines = [text[start : start + _COLUMNS] for start in range(0, len(text), _COLUMNS)]
    return "\n".join((_BEGIN, *lines, _END, ""))


def _unusable(what: str) -> HeadwaterError:
    return refuse("invalid_configuration", f"collect.toml cannot be used: {what}.")
