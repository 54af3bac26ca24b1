"""Any order of connects, renewals, refusals, revocations, changes and lost time: what always holds of a connection."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from connect.world import Clock, World
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headwater import clock as machine_clock
from headwater.connect.retention import erase_old
from headwater.connect.revoking import revoke
from headwater.errors import HeadwaterError, refuse

TOKENS = st.sampled_from(["anna", "anna2", "bert", "nobody"])
SAID = ["credential_invalid", "insufficient_scope", "provider_timeout", "provider_unavailable", "exchange_unknown"]
FAILURES = st.sampled_from([None] * 10 + SAID)


class Machine(RuleBasedStateMachine):
    """One instance, and everything that may happen to it."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.real, machine_clock.now = machine_clock.now, self.clock.now
        self.world = World(Path(self.folder.name), self.clock)
        self.identities = {}
        self.revoked = set()

    def teardown(self):
        if hasattr(self, "world"):
            self.world.registry.close()
            self.folder.cleanup()
            machine_clock.now = self.real

    @property
    def held(self):
        return self.world.registry.held(1000, "shop.me")

    @rule(token=TOKENS, said=FAILURES)
    def connect(self, token, said):
        self.world.provider.says = [said]
        occupied = bool(self.held)
        with suppress(HeadwaterError):
            self.world.connect(token)
            assert not occupied
            assert said is None
        self.world.provider.says = []

    @rule(token=TOKENS, said=FAILURES)
    def reconnect(self, token, said):
        self.world.provider.says = [said]
        with suppress(HeadwaterError):
            self.world.reconnect(token, self.revision)
        self.world.provider.says = []

    @rule(said=FAILURES)
    def revalidate(self, said):
        self.world.provider.says = [said] * 3
        with suppress(HeadwaterError):
            self.world.revalidate(self.revision)
        self.world.provider.says = []

    @rule(said=FAILURES)
    def read(self, said):
        """What is handed out is a credential of the connection's account, and is good by what was last said of it."""
        self.world.provider.says = [said]
        if self.held:
            with suppress(HeadwaterError):
                used = self.world.use()
                assert used.connection.lifecycle == "live"
                token = used.credential.envelope.access_token.text()
                assert {"anna": "anna", "anna2": "anna", "bert": "bert"}[token] == used.connection.identity.subject
        self.world.provider.says = []

    @rule()
    def revoke(self):
        for connection in self.held:
            revoke(self.world.registry, self.world.target, connection, str(connection.revision))
            self.revoked.add(connection.reference)

    @rule(seconds=st.sampled_from([1, 31, 61, 86_400]))
    def wait(self, seconds):
        self.clock.move(seconds=seconds)
        asyncio.run(erase_old(self.world.registry, self.world.vault, 1000))

    @rule(call=st.sampled_from(["read", "write_new", "delete", "probe"]), fails=st.booleans())
    def break_custody(self, call, fails):
        self.world.vault.fails = {call: refuse("custody_unavailable")} if fails else {}

    @rule(revision=st.sampled_from(["c1", "c2"]), trust=st.sampled_from(["", "x"]), engine=st.sampled_from(["1", "2"]))
    def configure(self, revision, trust, engine):
        self.world.configure(configuration_revision=revision, trust=trust, executable=engine)

    @property
    def revision(self):
        return self.held[0].revision if self.held else 1

    @invariant()
    def one_at_most_with_its_credential(self):
        if not hasattr(self, "world"):
            return
        assert len(self.held) <= 1
        for connection in self.held:
            assert (connection.reference, connection.version) in self.world.vault.kept
            assert self.identities.setdefault(connection.reference, connection.identity) == connection.identity

    @invariant()
    def revoked_for_good(self):
        for reference in getattr(self, "revoked", ()):
            assert self.world.registry.find(1000, reference).lifecycle == "revoked"


test_anything_may_happen = pytest.mark.clause("CLI-301", "CLI-320", "CLI-330", "CLI-333", "CLI-380")(Machine.TestCase)
Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
