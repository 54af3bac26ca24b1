"""Collects the events of an account, with the token that the host has of it."""

import json
from urllib.request import Request, urlopen

from headwater.sdk import Connector

connector = Connector()
QUESTION = {"type": "object", "properties": {"access_token": {"type": "string"}}, "required": ["access_token"]}


@connector.stream("events")
def events(stream):
    token = stream.run.ask("credentials", "Sign in to Acme Tickets", QUESTION)["access_token"]
    where = stream.run.options["endpoint"]
    request = Request(f"{where}/events?cursor=", headers={"authorization": f"Bearer {token}"})
    with urlopen(request, timeout=10) as answer:
        yield from json.load(answer)["items"]
    stream.save({"seen": True})


connector.run()
