"""Collects the orders of a web portal with a browser: signs in where it must, then reads the table page by page."""

from page import opened

from headwater.sdk import Connector, Fail

connector = Connector()
TABLE = "[...document.querySelector('#orders tbody').rows].map(row => [...row.cells].map(cell => cell.innerText))"


def sign_in(page, run):
    """Open the orders, and ask the owner for what the portal asks for: nothing, where it still knows the browser."""
    page.open(run.options["url"])
    if page.has("#password"):
        page.submit(run.ask("credentials", "User name and password of the portal."))
        if page.has("#password"):
            raise Fail("The portal refused the name or the password.", retryable=False, hint="refresh_credentials")
    if page.has("#code"):
        page.submit(run.ask("otp", "The code that the portal has sent you."))
        if page.has("#code"):
            raise Fail("The portal refused the code.", retryable=False, hint="manual_action_required")


def rows(page):
    """Yield the cells of each row, over all pages of the table."""
    yield from page.look(TABLE)
    while page.has("a[rel=next]"):
        page.open(page.look("document.querySelector('a[rel=next]').href"))
        yield from page.look(TABLE)


@connector.stream("orders")
def orders(stream):
    with opened(stream.run.bindings["browser_automation"]["ws_url"]) as page:
        sign_in(page, stream.run)
        for number, placed_on, item, cents in rows(page):
            yield {"number": number, "placed_on": placed_on, "item": item, "price_cents": int(cents)}


connector.run()
