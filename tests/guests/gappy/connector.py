"""Collects an album and its photos. A JSON file is the provider: what it has, lacks for now, lost, or waits for."""

import json
from pathlib import Path

from headwater.sdk import Connector

connector = Connector()


@connector.stream("albums")
def albums(stream):
    provider = json.loads(Path(stream.run.options["provider"]).read_text())
    stream.emit({"id": "summer"})
    if not stream.run.wants("photos"):
        return
    with stream.details("photos") as lane:
        for photo, answer in provider.items():
            fetch(lane, photo, answer)
        stream.save({"seen": len(provider)})


@connector.stream("photos")
def photos(stream):
    if stream.run.wants("albums"):
        return
    provider = json.loads(Path(stream.run.options["provider"]).read_text())
    stream.progress("asked for " + " ".join(sorted(stream.resources)))
    for photo in sorted(stream.resources):
        fetch(stream.alone("albums"), photo, provider[photo])


def fetch(lane, photo, answer):
    if answer == "here":
        lane.emit({"id": photo})
    elif answer.startswith("/"):
        Path(answer).read_text()  # a pipe: waits to be killed
    else:
        lane.gap(photo, answer, locator={"photo": photo}, retryable=answer != "lost", error={"status": 503})


connector.run()
