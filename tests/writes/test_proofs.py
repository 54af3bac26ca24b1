"""What an approval is, and everything that is none."""

import json
from base64 import urlsafe_b64decode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from writes.shop import told
from writes.signing import document_of, forged, prepared, proof_at

from headwater import clock
from headwater.errors import HeadwaterError
from headwater.operate.writes.model import Interval, Proof
from headwater.operate.writes.proof import check, make, read_proof
from headwater.vault.signing import new_pair, sign, verify

REFUSED = ("approval_refused", "admission", "retry_status", "not_attempted")


def decoded(part: str):
    return json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def parts(proof: Proof):
    head, body, _ = proof.evidence.split(".")
    return decoded(head), decoded(body)


class TestAProof:
    @pytest.mark.clause("CLI-728")
    def test_is_a_jws_by_the_active_key_over_the_exact_subject(self, shop):
        proof, preparation = shop.approve(), prepared(shop)
        header, claims = parts(proof)
        key = preparation.issuer.active
        assert header == {"alg": "Ed25519", "kid": key.key_id, "typ": "b10x.connectors-approval.v1+jws"}
        assert claims["subject"] == preparation.subject
        assert (claims["exp"] - claims["iat"], claims["iat"] - claims["nbf"]) == (295, 5)
        assert (claims["iss"], claims["aud"]) == (preparation.issuer.name, preparation.issuer.audience)
        assert claims["reference"] == proof.reference
        signed, _, signature = proof.evidence.rpartition(".")
        public = Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(key.public + "="))
        public.verify(urlsafe_b64decode(signature + "=="), signed.encode())

    @pytest.mark.clause("CLI-728", "CLI-713")
    @pytest.mark.parametrize(("seconds", "counts"), [(-296, False), (-280, True), (-1, True), (4, True), (60, False)])
    def test_counts_for_five_minutes(self, shop, seconds, counts):
        proof = proof_at(shop, clock.millis() + seconds * 1000)
        if counts:
            assert shop.write(proof=proof)["mutation"]["classification"] == "applied"
        else:
            assert told(shop.unwritten(proof=proof)) == REFUSED
            assert shop.changes == []

    def test_says_nothing_of_itself_in_a_log(self, shop):
        proof = shop.approve()
        assert proof.evidence not in repr(proof)
        assert proof.reference not in repr(proof)


class TestWhatIsNone:
    def test_one_of_another_write(self, shop):
        shop.orders["8"] = {"state": "open", "etag": "v1"}
        error = shop.unwritten("orders.cancel", {"number": "8"}, proof=shop.approve())
        assert told(error) == REFUSED
        assert error.data["mutation"]["cause"] == {"code": "approval_refused", "stage": "approval"}

    @pytest.mark.parametrize(
        ("member", "value"),
        [
            ("alg", "none"), ("alg", "HS256"), ("alg", "EdDSA"), ("typ", "JWT"), ("kid", "another"), ("jku", "x"),
        ],
    )  # fmt: skip
    def test_one_with_another_header(self, shop, member, value):
        header, claims = parts(shop.approve())
        assert told(shop.unwritten(proof=forged(shop, {**header, member: value}, claims))) == REFUSED

    @pytest.mark.parametrize(
        ("member", "value"),
        [
            ("iss", "connectors.local-issuer/other"), ("aud", "connectors.approval/other"), ("reference", "1" * 64),
            ("subject", {}), ("nbf", 1 << 40), ("exp", 1), ("more", 1), ("iat", "now"),
        ],
    )  # fmt: skip
    def test_one_with_other_claims(self, shop, member, value):
        proof = shop.approve()
        header, claims = parts(proof)
        other = forged(shop, header, {**claims, member: value})
        assert told(shop.unwritten(proof=Proof(proof.reference, other.evidence))) == REFUSED

    def test_one_by_another_key(self, shop):
        header, claims = parts(shop.approve())
        assert told(shop.unwritten(proof=forged(shop, header, claims, new_pair().document))) == REFUSED

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"reference":"x","evidence":"y"}', "\ud800", "[" * 9999])
    def test_what_a_file_may_hold_besides(self, text):
        assert read_proof(text) is None

    def test_a_reference_is_64_hexadecimal_digits_and_evidence_bounded(self):
        good = {"reference": "a" * 64, "evidence": "e" * (18 << 10)}
        assert read_proof(json.dumps(good)) is not None
        for changed in (
            {"reference": "A" * 64},
            {"reference": "a" * 63},
            {"evidence": "e" * ((18 << 10) + 1)},
            {"x": 1},
        ):
            assert read_proof(json.dumps({**good, **changed})) is None

    def test_one_whose_signature_is_spelt_in_another_way(self, shop):
        """The last of 86 characters holds four bits that say nothing."""
        proof = shop.approve()
        for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=\n":
            if last != proof.evidence[-1]:
                other = Proof(proof.reference, proof.evidence[:-1] + last)
                assert told(shop.unwritten(proof=other)) == REFUSED
        assert told(shop.unwritten(proof=Proof(proof.reference, proof.evidence + "="))) == REFUSED
        assert shop.write(proof=proof)["mutation"]["classification"] == "applied"

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_one_of_which_a_character_was_changed(self, shop, data):
        preparation, document = prepared(shop), document_of(shop)
        key, now = preparation.issuer.active, Interval(clock.millis(), clock.millis())
        proof = make(preparation, key, "a" * 64, now, lambda message: sign(document, message))
        check(proof, preparation, now, verify)
        place = data.draw(st.integers(0, len(proof.evidence) - 1))
        other = data.draw(st.characters(codec="utf-8").filter(lambda one: one != proof.evidence[place]))
        changed = proof.evidence[:place] + other + proof.evidence[place + 1 :]
        with pytest.raises(HeadwaterError) as caught:
            check(Proof(proof.reference, changed), preparation, now, verify)
        assert caught.value.code == "approval_refused"
