"""Settings at a service: checked first, then applied, all or none; those before are restored (INT-155)."""

import json

import pytest
from releases.making import ASSET, index_of, packed
from releases.shelf import AUTH, definition

OPTIONS = """
[options.properties.currency]
type = "string"

[options.properties.page]
type = "integer"
"""
HOOK = """
    def configure(self, ctx: Context, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if values.get("currency") == "XXX":
            raise Refused("invalid_fields", fields={"currency": "There is no such currency."})
        self._post(ctx, "/settings", values)
        if values.get("page") == 13:
            raise Refused("provider_unavailable")
        if values.get("page") == 14:
            return {"page": "fourteen"}
        return values
"""


@pytest.fixture
def tuned(ada, service):
    """Ada's account, with an integration that can be configured and a service that remembers what it is told."""
    code = ada.code / "integration.py"
    code.write_text(code.read_text().replace("Integration, Page", "Integration, Page, Refused") + HOOK)
    package = ada.code / "connector.toml"
    package.write_text(package.read_text() + OPTIONS)
    ada.manifest(actions={"refresh": True, "configure": True, "disconnect": True})
    ada.type("setup", "owner-stop")
    service.settings = []
    answer = service.RequestHandlerClass.do_POST

    def remembered(desk):
        if desk.path != "/settings":
            return answer(desk)
        service.settings.append(json.loads(desk.rfile.read(int(desk.headers["content-length"]))))
        return desk.answer(200, {})

    service.RequestHandlerClass = type("Remembering", (service.RequestHandlerClass,), {"do_POST": remembered})
    return ada


def configure(ada, *settings, status=0):
    words = [word for setting in settings for word in ("--set", setting)]
    return ada.type("connections", "configure", "acme-tickets/me", *words, status=status)


@pytest.mark.clause("INT-155", "INT-150")
def test_settings_are_applied_as_a_whole_or_not_at_all(tuned, service):
    """What does not fit applies nothing; what fails in the midst is taken back, at the service and here."""
    assert configure(tuned, "currency=CHF", "page=5")["options"] == {"currency": "CHF", "page": 5}
    assert service.settings == [{"currency": "CHF", "page": 5}]

    failure = configure(tuned, "currency=XXX", status=2)
    assert failure["code"] == "invalid_input"
    assert "There is no such currency." in failure["message"]
    assert configure(tuned, "page=many", status=2)["code"] == "invalid_options"
    assert configure(tuned, "colour=red", status=2)["code"] == "invalid_options"
    assert configure(tuned, "endpoint=https://other.example", status=2)["code"] == "invalid_options"
    assert len(service.settings) == 1

    assert configure(tuned, "page=13", status=1)["code"] == "unavailable"
    assert service.settings[1:] == [{"currency": "CHF", "page": 13}, {"currency": "CHF", "page": 5}]
    assert configure(tuned, "page=14", status=2)["code"] == "invalid_options"
    assert service.settings[-1] == {"currency": "CHF", "page": 5}

    assert configure(tuned, "page=6")["options"] == {"currency": "CHF", "page": 6}


def test_what_cannot_be_restored_is_told(tuned, service):
    """Nobody knows then what holds at the service."""
    configure(tuned, "page=5")
    code = tuned.code / "integration.py"
    code.write_text(code.read_text().replace('values.get("page") == 13', "True"))
    tuned.type("setup", "owner-stop")
    failure = configure(tuned, "page=6", status=1)
    assert (failure["code"], failure["next_action"]) == ("outcome_unknown", "retry_status")


@pytest.fixture
def released(tuned, service):
    """The same account, whose operations a release serves: it names the same way to sign in."""
    same = AUTH.replace('key = "api_token"', 'key = "token"')
    files = {"services/acme-tickets.toml": definition(service.endpoint, auth=f"[[auth.methods]]{same}")}
    asset, folder = packed(files), tuned.code.parent / "source" / "0.3.0"
    folder.mkdir(parents=True)
    (folder / ASSET).write_bytes(asset)
    (folder / "index.json").write_text(json.dumps(index_of(files, asset)))
    digest = tuned.type("definitions", "install", "--source", str(folder.parent), "--tag", "0.3.0")["index_sha256"]
    tuned.type("definitions", "use", "acme-tickets/me", "--release", digest)
    return tuned


@pytest.mark.clause("CLI-528")
def test_the_code_of_an_instance_that_a_release_serves_configures_nothing(released, service):
    """It runs no code of its connector, and whoever types is told how the connector serves it again."""
    failure = configure(released, "currency=CHF", status=1)
    assert (failure["code"], failure["command"]) == ("unsupported", "headwater definitions use acme-tickets/me --none")
    assert service.settings == []
    released.type("definitions", "use", "acme-tickets/me", "--none")
    assert configure(released, "currency=CHF")["options"] == {"currency": "CHF"}
