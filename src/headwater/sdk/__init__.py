"""What a connector author imports.

Connector    reads START, runs one function per stream, and always ends with DONE
StreamRun    one stream in one run: its cursor, `emit`, `save`, `progress`, `skip`, `details`
DetailLane   the details of one parent's records, with every key accounted for
Enumeration  what became of each record of a stream that rides on another one's cursor
RunContext   what the streams of a run share: options, scope, the owner to `ask`, a place for `blob`s
Fail         raise it to end the run as failed, with a sentence for the owner
Incomplete   raise it where one stream cannot be collected to its end; the others go on
Declined     the owner did not answer
Misuse       the connector asked the SDK for something that would break the profile

    from headwater.sdk import Connector

    connector = Connector()

    @connector.stream("numbers")
    def numbers(stream):
        for n in range(stream.cursor.get("next", 0), 100):
            yield {"id": str(n), "square": n * n}
        stream.save({"next": 100})

    connector.run()

stdout belongs to the protocol, from this import on: whatever else the program prints goes to stderr.
"""

from headwater.sdk.channel import is_connector, take_stdout
from headwater.sdk.connector import Connector
from headwater.sdk.lanes import DetailLane, Enumeration
from headwater.sdk.outcome import Declined, Fail, Incomplete, Misuse
from headwater.sdk.streams import RunContext, StreamRun

if is_connector():
    take_stdout()

__all__ = [
    "Connector",
    "Declined",
    "DetailLane",
    "Enumeration",
    "Fail",
    "Incomplete",
    "Misuse",
    "RunContext",
    "StreamRun",
]
