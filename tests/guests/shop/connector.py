"""Reads the orders of a shop's account with the token that the owner answers."""

import json
import urllib.error
import urllib.request

from headwater.sdk import Connector, Fail, StreamRun

connector = Connector()
SCHEMA = {"type": "object", "properties": {"token": {"type": "string", "format": "password"}}, "required": ["token"]}


@connector.stream("orders")
def orders(stream: StreamRun) -> None:
    """Collect every order."""
    answer = stream.run.ask("credentials", "The shop's API token, please.", SCHEMA)
    request = urllib.request.Request(f"{stream.run.options['endpoint']}/orders")
    request.add_header("Authorization", f"Bearer {answer['token']}")
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            rows = json.load(reply)
    except urllib.error.HTTPError as error:
        raise Fail("The shop refuses the token.", retryable=False, hint="refresh_credentials") from error
    for row in rows:
        stream.emit(row)


if __name__ == "__main__":
    connector.run()
