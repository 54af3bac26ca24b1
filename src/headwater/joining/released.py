"""What serves an instance that opted in to an installed release of definitions (CLI-528).

The release is read by the digest that the instance's key names, and by nothing else: `definitions.lock` says what was
installed last, and is nobody's setting.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from headwater.catalog.defined import Defined
from headwater.catalog.released import definitions_of
from headwater.errors import HeadwaterError, is_exhausted, refuse
from headwater.store.installed import UNHARMED, installed

if TYPE_CHECKING:
    from headwater.settings import Settings


def released(settings: Settings, digest: str, connector: str) -> Defined:
    """Return a connector as a release defines it, each file that is read of it verified.

    Raise `description_unavailable` where the release or its definition of the connector is not there, `digest_mismatch`
    where it is not what was installed, `release_invalid` where the definition cannot be used or stands there twice, and
    what `read_release` has for an index that this build cannot read.
    """
    try:
        with installed(settings.releases_dir, digest) as release:
            found = definitions_of(connector, release.index.files, release.read)
    except FileNotFoundError:
        raise _absent("The release of definitions that the instance names is not installed here.") from None
    except OSError as error:
        if is_exhausted(error):
            raise
        message = "The installed releases cannot be read, or others can change a folder that they lie in."
        raise _absent(message) from error
    if not found:
        raise _absent("The release of definitions has none of this connector.")
    if len(found) > 1:
        message = "The release defines the connector in more than one file, and none of them is preferred."
        raise refuse("release_invalid", message, safe=UNHARMED)
    place, provider = settings.releases_dir / digest, found[0].provider
    if provider is None:
        file = shlex.quote(str(place / "files" / found[0].path))
        message = "The release's definition of the connector cannot be used."
        command = f"headwater definitions check {file}"
        raise refuse("release_invalid", message, safe=UNHARMED, command=command)
    return Defined(provider, place, digest, version=digest)


def _absent(message: str) -> HeadwaterError:
    command = "headwater definitions list"
    return refuse("description_unavailable", message, next_action="check_configuration", safe=UNHARMED, command=command)
