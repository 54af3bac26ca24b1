"""An account is connected once; runs use it without a question, until it is revoked."""


def test_connect_collect_revoke(headwater, shop):
    made = headwater.connect().result
    assert made["connector"] == "shop"
    shown = headwater.connection()
    assert (shown["connection"], shown["state"], shown["revision"]) == (made["connection"], "ready", 1)
    assert shown["external_identity"] == {"kind": "user", "subject": "anna"}
    run = headwater.type("collect", "shop/me")
    assert run.status == 0, run.stderr
    assert headwater.keys("orders", "shop/me") == {"1"}
    gone = headwater.type("connections", "revoke", "--expected-revision", "1").result
    assert (gone["local_state"], gone["provider_outcome"]) == ("revoked", "not_requested")
    refused = headwater.type("collect", "shop/me")
    assert (refused.status, refused.failure["code"]) == (1, "revoked")
