"""A Secret Service on a real bus that breaks its promises, in one way at a time; it writes down what it is asked.

It speaks the API as far as custody needs it, with the real key exchange, and keeps items in memory.
"""

import threading
from contextlib import contextmanager, suppress

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from jeepney import HeaderFields, MessageType, new_error, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import Proxy, open_dbus_connection
from secretstorage.dhcrypto import Session
from secretstorage.util import format_secret

LOGIN = "/org/freedesktop/secrets/collection/login"
SESSION = "/org/freedesktop/secrets/collection/session"
PROMPT = "/org/freedesktop/secrets/prompt/1"
REFUSED = "org.freedesktop.DBus.Error.Failed"

KINDS = {
    "forgets": "it acknowledges an item and keeps none",
    "alters": "it keeps other bytes",
    "cuts": "it keeps a part of the bytes",
    "session": "it keeps the item in the session's collection",
    "twins": "it keeps the item twice",
    "silent": "it keeps the item and never says so",
    "refuses": "it answers CreateItem with an error that repeats what it was sent",
    "babbles": "it answers CreateItem with something of another shape",
    "leaves": "it ends its connection on CreateItem",
}


class LyingKeyring:
    """Serves one bus from a thread of its own until it is closed."""

    def __init__(self, socket, kind):
        self.kind = kind
        self.asked = []
        self.items = {}
        self.session = Session()
        self._bus = open_dbus_connection(f"unix:path={socket}")
        assert Proxy(message_bus, self._bus).RequestName("org.freedesktop.secrets") == (1,)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        with suppress(OSError):
            self._bus.sock.shutdown(2)
        self._thread.join()

    def _serve(self):
        with suppress(OSError, ValueError):
            while True:
                message = self._bus.receive()
                if message.header.message_type is MessageType.method_call:
                    self._answer(message)

    def _answer(self, message):
        member = message.header.fields[HeaderFields.member]
        self.asked.append(member)
        answer = getattr(self, f"_{member}", None)
        if answer is None:
            return self._bus.send(new_error(message, REFUSED))
        reply = answer(message, *message.body)
        return None if reply is None else self._bus.send(reply)

    def _Get(self, message, interface, name):
        value = {"Locked": ("b", self.kind == "locked"), "Label": ("s", "")}[name]
        return new_method_return(message, "v", (value,))

    def _OpenSession(self, message, algorithm, value):
        if self.kind == "plain":
            if algorithm != "plain":
                return new_error(message, "org.freedesktop.DBus.Error.NotSupported")
            return new_method_return(message, "vo", (("s", ""), "/session/1"))
        self.session.object_path = "/session/1"
        self.session.set_server_public_key(int.from_bytes(value[1], "big"))
        public = self.session.my_public_key.to_bytes(128, "big")
        return new_method_return(message, "vo", (("ay", public), "/session/1"))

    def _CreateItem(self, message, properties, secret, replace):
        assert replace is False
        plain = self._opened(secret)
        if self.kind == "prompts":
            return new_method_return(message, "oo", ("/", PROMPT))
        if self.kind == "refuses":
            return new_error(message, REFUSED, "s", (plain.decode("latin-1"),))
        if self.kind == "babbles":
            return new_method_return(message, "s", (plain.decode("latin-1"),))
        place = SESSION if self.kind == "session" else LOGIN
        kept = {"alters": plain[::-1], "cuts": plain[:-1]}.get(self.kind, plain)
        attributes = dict(properties["org.freedesktop.Secret.Item.Attributes"][1])
        for twin in range({"forgets": 0, "twins": 2}.get(self.kind, 1)):
            self.items[f"{place}/{len(self.items)}{twin}"] = (attributes, kept)
        if self.kind == "silent":
            return None
        if self.kind == "leaves":
            self._bus.sock.shutdown(2)
            return None
        return new_method_return(message, "oo", (f"{place}/00", "/"))

    def _SearchItems(self, message, wanted):
        found = [path for path, (attributes, _) in self.items.items() if wanted.items() <= attributes.items()]
        return new_method_return(message, "ao", (found,))

    def _GetSecret(self, message, session):
        _, kept = self.items[message.header.fields[HeaderFields.path]]
        return new_method_return(message, "(oayays)", (format_secret(self.session, kept, "text/plain"),))

    def _Delete(self, message):
        if self.kind == "prompts":
            return new_method_return(message, "o", (PROMPT,))
        if self.kind != "keeps":
            del self.items[message.header.fields[HeaderFields.path]]
        return new_method_return(message, "o", ("/",))

    def _opened(self, secret):
        _, nonce, ciphertext, _ = secret
        decryptor = Cipher(algorithms.AES(self.session.aes_key), modes.CBC(nonce)).decryptor()
        padded = decryptor.update(ciphertext) + decryptor.finalize()
        return padded[: -padded[-1]]


@contextmanager
def lying_keyring(socket, kind):
    """Let one serve the bus for as long as this is open."""
    keyring = LyingKeyring(socket, kind)
    try:
        yield keyring
    finally:
        keyring.close()
