"""A ledger that is called as a plain object, behind the port that is awaited."""

from functools import partial


class Awaited:
    """Gives every call of a ledger in this process the shape of the `Ledger` port."""

    def __init__(self, ledger):
        self.ledger = ledger

    def __getattr__(self, name):
        return partial(self._awaited, name)

    async def _awaited(self, name, *values, **named):
        return getattr(self.ledger, name)(*values, **named)
