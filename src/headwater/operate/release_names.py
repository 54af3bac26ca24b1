"""How a person names a release of definitions: where it comes from, and its tag."""

import re
from typing import Final
from urllib.parse import urlsplit

from headwater import limits
from headwater.errors import HeadwaterError, refuse

_TAG: Final = re.compile(rf"[A-Za-z0-9._-]{{1,{limits.RELEASE_TAG_BYTES}}}")
_URL: Final = re.compile(r"[!-~]+")


def checked_tag(text: str) -> str:
    """Return a tag, or raise `invalid_input` (CLI-503)."""
    if not _TAG.fullmatch(text) or text in (".", ".."):
        raise refuse("invalid_input", "A tag is 1 to 128 letters, digits, `.`, `_` and `-`, and not `.` or `..`.")
    return text


def repository(source: str) -> str | None:
    """Return the URL of a repository without a `/` at its end, or None where a source names a folder.

    A colon makes it a URL, unless the text begins as a path. Raise `invalid_input` for any URL that is not a plain
    one over https: without a name or password, a query and a fragment (CLI-502).
    """
    if not source or "\0" in source:
        raise unfit_source()
    if source.startswith(("/", "./", "../")) or ":" not in source:
        return None
    if not _URL.fullmatch(source) or len(source) > limits.URL_CHARACTERS or set(source) & set("?#\\"):
        raise unfit_source()
    try:
        parts = urlsplit(source)
        is_plain = parts.scheme == "https" and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        raise unfit_source() from None
    if not is_plain:
        raise unfit_source()
    return source.rstrip("/")


def unfit_source() -> HeadwaterError:
    """Return the refusal of a source that is neither a folder nor a plain URL."""
    message = "A source is a folder, or the URL of a repository: https, with no password, query or fragment."
    return refuse("invalid_input", message)
