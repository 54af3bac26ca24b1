"""Messages to lines."""

import msgspec

from headwater.wire.compatibility import GapsPage
from headwater.wire.messages import ConnectorMessage, RuntimeMessage

_encode = msgspec.json.Encoder().encode


def encode(message: RuntimeMessage | ConnectorMessage | GapsPage) -> bytes:
    """Write a message as one line, with its LF."""
    return _encode(message) + b"\n"
