"""An album with one photo that cannot be fetched; what the provider said of it is an option."""

import json

from headwater.sdk import Connector

connector = Connector()


@connector.stream("albums")
def albums(stream):
    if stream.cursor:
        return
    with stream.details("photos") as lane:
        stream.emit({"id": "a1"})
        lane.require("p1")
        lane.absent("p1", json.loads(stream.run.options["said"]))
    stream.save({"after": "a1"})


connector.run()
