"""Collects an album and its photos. The provider is a JSON file: the photos it has, lacks for now, and lost."""

import json
import os
import signal
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
    elif answer == "kill the host":
        os.kill(os.getppid(), signal.SIGKILL)
    else:
        lane.gap(photo, answer, locator={"photo": photo}, retryable=answer != "lost", error={"status": 503})


connector.run()
