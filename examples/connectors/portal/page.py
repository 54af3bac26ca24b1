"""A page of the browser, driven over the Chrome DevTools Protocol: JSON messages on a WebSocket."""

import json
from contextlib import contextmanager

from websockets.sync.client import connect

from headwater.sdk import Fail

SECONDS = 30


@contextmanager
def opened(address):
    """Open a tab in the browser that listens at an address."""
    # The browser is on this machine, so no proxy stands between; a page's text may be longer than a megabyte.
    with connect(address, proxy=None, max_size=None) as socket:
        yield Page(socket)


class Page:
    """One tab. `open` and `submit` return when the page that follows has loaded."""

    def __init__(self, socket):
        self._socket = socket
        self._calls = 0
        self._session = {}
        self._loaded = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        self._call("Page.enable")

    def open(self, address):
        """Go to an address."""
        self._loaded = False
        if self._call("Page.navigate", url=address).get("errorText"):
            raise Fail("The page cannot be reached.")
        self._wait()

    def has(self, selector):
        """Say whether the page has an element."""
        return self.look(f"document.querySelector({json.dumps(selector)}) !== null")

    def look(self, expression):
        """Return the value of an expression in JavaScript."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise Fail("The page is not as expected.", hint="retry_on_connector_upgrade")
        return answer["result"].get("value")

    def submit(self, values):
        """Type into the fields with these ids, and send their form."""
        for name, text in values.items():
            self.look(f"document.getElementById({json.dumps(name)}).focus()")
            self._call("Input.insertText", text=text)
        self._loaded = False
        self.look("document.activeElement.form.requestSubmit()")
        self._wait()

    def _wait(self):
        while not self._loaded:
            self._receive()

    def _call(self, method, **parameters):
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters, **self._session}))
        while (message := self._receive()).get("id") != self._calls:
            pass
        if "error" in message:
            raise Fail(f"The browser refused {method}.")
        return message["result"]

    def _receive(self):
        try:
            message = json.loads(self._socket.recv(SECONDS))
        except TimeoutError:
            raise Fail(f"The page did not come within {SECONDS} seconds.") from None
        self._loaded = self._loaded or message.get("method") == "Page.loadEventFired"
        return message
