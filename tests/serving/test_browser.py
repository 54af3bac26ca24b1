"""A page of another site, in a real browser that has the token even: its requests do nothing here."""

import http.server
import subprocess
from threading import Thread

import pytest

from headwater.process.browser import find_browser

PAGE = """<script>
const at = "http://127.0.0.1:PORT/v1/", json = {method: "POST", body: BODY};
const token = {Authorization: "Bearer TOKEN"};
Promise.allSettled([
  fetch(at + "integrations/acme-tickets/auth/password/start", {...json, mode: "no-cors"}),
  fetch(at + "integrations/acme-tickets/auth/password/start", {...json, headers: token}),
  fetch(at + "integrations", {mode: "no-cors"}),
]).then(done => document.title = "done " + done.map(one => one.value ? one.value.type : "failed"));
</script>"""


class Page(http.server.BaseHTTPRequestHandler):
    server: "http.server.ThreadingHTTPServer"
    text = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.mark.clause("INT-425")
@pytest.mark.skipif(find_browser() is None, reason="there is no browser on this machine")
def test_a_page_of_another_site_does_nothing_in_a_real_browser(program, acme, tmp_path):
    """Each of its requests is refused before it is looked at, or never leaves the browser."""
    body = """'{"instance":"me","fields":{"user":"ada","password":"correct horse"}}'"""
    Page.text = PAGE.replace("PORT", str(program.port)).replace("TOKEN", program.token).replace("BODY", body)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        words = [
            str(find_browser()),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}/browser",
        ]
        words += ["--virtual-time-budget=10000", "--dump-dom", f"http://localhost:{site.server_port}/"]
        shown = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
        site.shutdown()
    assert "<title>done opaque,failed,opaque</title>" in shown
    told = [line.split()[2:6] for line in program.log.read_text().splitlines()]
    assert told
    assert {status for *_, status, _ in told} == {"403"}
    assert acme.asked == []
