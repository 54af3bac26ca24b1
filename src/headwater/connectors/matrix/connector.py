"""A Matrix account, over its homeserver's client-server API."""

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

from headwater.sdk import Connector, StreamRun

if TYPE_CHECKING:
    from headwater.connectors.matrix.files import Files
    from headwater.connectors.matrix.homeserver import homeserver_of
    from headwater.connectors.matrix.rooms import Rooms
    from headwater.connectors.matrix.timeline import Timeline
else:
    from files import Files
    from homeserver import homeserver_of
    from rooms import Rooms
    from timeline import Timeline

connector = Connector()
_KEY = re.compile(r'\["(![^"]+)","(\$[^"]+)"\]')


@connector.stream("rooms")
def rooms(stream: StreamRun) -> None:
    """Collect the rooms that are new or changed, and their members where the run wants them."""
    Rooms(stream).walk()


@connector.stream("messages")
def messages(stream: StreamRun) -> None:
    """Collect the messages that are new or changed, with their reactions and files where the run wants them."""
    with ExitStack() as stack:
        wanted = stream.run.wants("files")
        lane = stack.enter_context(stream.details("files")) if wanted else None
        Timeline(stream, lane).walk()


@connector.stream("files")
def files(stream: StreamRun) -> None:
    """Fetch the files that a run asks for by name, without their messages: so a gap is tried again."""
    if stream.run.wants("messages"):
        return
    if stream.resources is None:
        stream.skip("scope_not_supported", "Files come with their messages, or by name.")
        return
    alone = Files(stream.run, homeserver_of(stream.run), stream.alone("messages"))
    for name in sorted(stream.resources):
        if key := _KEY.fullmatch(name):
            alone.again(key[1], key[2])


if __name__ == "__main__":
    connector.run()
