"""The keys that sign approvals, from the first one to the last trace of one."""

import asyncio

import pytest
from operate.desk import SELECTION
from writes.signing import document_of

from headwater.errors import HeadwaterError
from headwater.operate.writes.keys import Keys
from headwater.secret import Secret
from headwater.store.sqlite.approvals import opened
from headwater.vault.signing import new_pair, public_of


class Safe:
    """A custody in memory that can break before or behind the bytes are kept."""

    def __init__(self):
        self.kept, self.breaks = {}, ""

    async def write_new(self, scope, material, note):
        version = f"v{len(self.kept)}"
        note(version)
        if self.breaks == "before":
            raise HeadwaterError("custody_unavailable")
        self.kept[scope, version] = material
        if self.breaks == "behind":
            raise HeadwaterError("outcome_unknown")
        return version

    async def read(self, scope, version):
        if (scope, version) not in self.kept:
            raise HeadwaterError("custody_unavailable")
        return self.kept[scope, version]

    async def delete(self, scope, version):
        return self.kept.pop((scope, version), None)


@pytest.fixture
def safe():
    return Safe()


@pytest.fixture
def keys(tmp_path, safe):
    with opened(tmp_path / "state" / "headwater.db", 1000) as approvals:
        yield Keys(approvals, safe, new_pair, lambda: "issuer_1", public_of)


def run(work):
    return asyncio.run(work)


def refused(work) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        run(work)
    return caught.value


def states(keys):
    return [key.state for key in keys.now().keys]


class TestWhatFollowsWhat:
    def test_the_first_key_is_active_and_its_private_half_kept(self, keys, safe):
        issuer = run(keys.init(None))
        assert (states(keys), issuer.active) == (["active"], issuer.keys[0])
        assert public_of(safe.kept[issuer.issuer_id, issuer.keys[0].version]) == issuer.keys[0].public

    def test_a_second_init_is_a_conflict(self, keys):
        run(keys.init(None))
        for seen in (None, str(keys.now().revision)):
            again = refused(keys.init(seen))
            assert (again.code, "key-rotate" in again.message) == ("lifecycle_conflict", True)
        assert states(keys) == ["active"]

    def test_a_rotation_is_a_hard_cut(self, keys):
        issuer = run(keys.init(None))
        after = run(keys.rotate(str(issuer.revision), issuer.keys[0].key_id))
        assert (states(keys), after.active) == (["retired", "active"], after.keys[1])

    def test_a_revocation_leaves_no_key_until_there_is_another(self, keys):
        issuer = run(keys.init(None))
        after = run(keys.revoke(str(issuer.revision), issuer.keys[0].key_id))
        assert (states(keys), after.active) == (["retired"], None)
        assert refused(keys.init(None)).data["field"] == "expected_revision"
        run(keys.init(str(after.revision)))
        assert states(keys) == ["retired", "active"]

    def test_retiring_erases_the_private_half_of_a_key_that_is_not_current(self, keys, safe):
        issuer = run(keys.init(None))
        first = issuer.keys[0].key_id
        assert refused(keys.retire(str(issuer.revision), first)).code == "lifecycle_conflict"
        after = run(keys.rotate(str(issuer.revision), first))
        run(keys.retire(str(after.revision), first))
        assert states(keys) == ["deleted", "active"]
        assert len(safe.kept) == 1

    @pytest.mark.parametrize("command", ["rotate", "revoke", "retire", "recover"])
    def test_who_has_not_seen_the_last_change_changes_nothing(self, keys, command):
        assert refused(getattr(keys, command)("1", "key")).code == "not_found"
        issuer = run(keys.init(None))
        stale = str(issuer.revision - 1)
        assert refused(getattr(keys, command)(stale, issuer.keys[0].key_id)).data["field"] == "expected_revision"
        assert refused(getattr(keys, command)(str(issuer.revision), "another")).code in (
            "lifecycle_conflict", "not_found"
        )  # fmt: skip
        assert keys.now() == issuer

    def test_of_128_keys_those_that_are_deleted_make_room(self, keys):
        issuer = run(keys.init(None))
        for _ in range(127):
            issuer = run(keys.rotate(str(issuer.revision), issuer.active.key_id))
        full = refused(keys.rotate(str(issuer.revision), issuer.active.key_id))
        assert (full.code, len(keys.now().keys)) == ("capacity", 128)
        issuer = run(keys.retire(str(issuer.revision), issuer.keys[0].key_id))
        issuer = run(keys.rotate(str(issuer.revision), issuer.active.key_id))
        assert (len(issuer.keys), issuer.keys[0].state) == (128, "retired")


class TestACreationThatWasCutOff:
    def test_behind_custody_it_is_recovered_with_the_same_key(self, keys, safe):
        safe.breaks = "behind"
        assert refused(keys.init(None)).code == "outcome_unknown"
        candidate, safe.breaks = keys.now().keys[0], ""
        assert states(keys) == ["candidate"]
        assert refused(keys.init(str(keys.now().revision))).code == "lifecycle_conflict"
        issuer = run(keys.recover(str(keys.now().revision), candidate.key_id))
        assert (states(keys), issuer.active.public) == (["active"], candidate.public)

    def test_before_custody_there_is_nothing_to_recover_and_it_is_revoked(self, keys, safe):
        safe.breaks = "before"
        refused(keys.init(None))
        candidate, safe.breaks = keys.now().keys[0], ""
        assert refused(keys.recover(str(keys.now().revision), candidate.key_id)).code == "custody_unavailable"
        run(keys.revoke(str(keys.now().revision), candidate.key_id))
        run(keys.init(str(keys.now().revision)))
        assert states(keys) == ["retired", "active"]

    def test_what_custody_has_instead_is_not_believed(self, keys, safe):
        safe.breaks = "behind"
        refused(keys.init(None))
        for place in safe.kept:
            for other in (new_pair().document, Secret(b"{}"), Secret(b"\xff")):
                safe.kept[place] = other
                error = refused(keys.recover(str(keys.now().revision), keys.now().keys[0].key_id))
                assert error.code == "custody_unavailable"
        assert states(keys) == ["candidate"]


@pytest.mark.clause("CLI-711")
def test_what_the_one_before_has_signed_counts_no_more(shop):
    proof = shop.approve()
    seen = shop.headwater.type("approvals", "key-status").result["issuer"]
    words = ["--expected-revision", str(seen["revision"]), "--expected-key", seen["keys"][0]["key_id"]]
    after = shop.headwater.type("approvals", "key-rotate", *words).result["issuer"]
    assert [key["state"] for key in after["keys"]] == ["retired", "active"]
    assert shop.unwritten(proof=proof).code == "approval_refused"
    assert shop.write()["mutation"]["classification"] == "applied"
    words = ["--expected-revision", str(after["revision"]), "--key", seen["keys"][0]["key_id"]]
    gone = shop.headwater.type("approvals", "key-retire", *words).result["issuer"]
    assert [key["state"] for key in gone["keys"]] == ["deleted", "active"]
    with opened(shop.database, shop.host.connecting.target(SELECTION).owner) as approvals:
        assert approvals.issuer().keys[0].version is None
    assert public_of(document_of(shop)) == gone["keys"][1]["public_key"]
