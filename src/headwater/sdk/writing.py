"""Writing one stream: its records and its gaps, held to the scope before they go out."""

from collections.abc import Mapping
from typing import Any

from headwater import clock
from headwater.sdk.channel import Channel
from headwater.sdk.narrowing import Narrowing
from headwater.sdk.values import check_values
from headwater.wire.messages import Key


class Writer:
    """The way from a stream's data to the channel."""

    def __init__(self, channel: Channel, narrowing: Narrowing) -> None:
        self.channel = channel
        self.narrowing = narrowing
        self.name = narrowing.stream.name
        self.key_of = narrowing.key_of

    def record(self, data: Mapping[str, Any], key: Key | None, op: str | None = None) -> bool:
        """Send a record; return whether the scope has it. Raise `Misuse` where JSON has no form for its data."""
        key = self.key_of(data) if key is None else key
        if not self.narrowing.admits(key, data):
            return False
        kept = self.narrowing.project(data)
        check_values(kept, f"a record of {self.name}")
        message = {"type": "RECORD", "stream": self.name, "key": key, "data": kept, "emitted_at": clock.stamp()}
        if op is not None:
            message["op"] = op
        self.channel.send(message, records=1)
        return True

    def gap(self, parent: str, name: str, **told: Any) -> None:
        """Send a gap for a canonical key. Raise `Misuse` where its locator holds a secret (CP-537)."""
        if told["detail_locator"] is not None:
            self.channel.secrets.check_locator(told["detail_locator"])
        self.channel.say("DETAIL_GAP", stream=self.name, parent_stream=parent, record_key=name, **told)
