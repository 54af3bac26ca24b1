"""A program that takes a credential from one source and prints a digest of it: `enters.py prompt|file|stdin [PATH]`."""

import hashlib
import json
import sys

from headwater.cli.protected import Source
from headwater.errors import HeadwaterError
from headwater.manifest.auth import Field, Method

ACCOUNT = Method(
    "account",
    "Account and token",
    "token",
    (Field("account", "Account", "text", required=True), Field("token", "Token", "token", required=True)),
    scheme="basic",
)

if __name__ == "__main__":
    try:
        fields = Source(sys.argv[1], *sys.argv[2:]).read(ACCOUNT)
        digests = {name: hashlib.sha256(value.reveal()).hexdigest() for name, value in fields.items()}
        print(json.dumps({"digests": digests, "shown": repr(fields)}))
    except HeadwaterError as error:
        told = {"code": error.code, "stage": error.stage, "next_action": error.next_action, "message": error.message}
        print(json.dumps({**told, "exit": error.exit_status}))
