"""What a child may see of the caller's environment: an allow-list, never a token of ours."""

import os
from collections.abc import Iterable, Mapping

_ALLOWED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR")
_ALLOWED_PREFIXES = ("LC_",)


def child_environment(extra: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a child: the allowed variables, those its connector names, and ours."""
    names = frozenset((*_ALLOWED, *also))
    kept = {k: v for k, v in os.environ.items() if k in names or k.startswith(_ALLOWED_PREFIXES)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **extra}
