"""Which instance is meant: by a pair, by an alias, or by default; and what its revisions follow from."""

import pytest
from configuration.documents import DIGEST, document, entry
from msgspec.structs import replace

from headwater.configuration.model import Permissions, unpinned
from headwater.configuration.reading import parse
from headwater.configuration.revisions import Declared, derived, digest, executable_selection
from headwater.configuration.selecting import Selection, admitted, invoked, select, target
from headwater.errors import HeadwaterError
from headwater.manifest.auth import Identity, Method

SUPPORT = '[connectors.zendesk.instances.support]\nalias = "old"\n'
TWO = SUPPORT + entry("forge") + entry("lone", adapter_id='"catalog"')


def refused(call, *arguments) -> HeadwaterError:
    """Return how a call is refused."""
    with pytest.raises(HeadwaterError) as caught:
        call(*arguments)
    return caught.value


def configuration(head: str = "", body: str = TWO):
    """Return a configuration with an instance and two legacy entries."""
    return parse(document(body, head=head).encode())


@pytest.mark.clause("CLI-200", "CLI-202", "CLI-208", "CLI-210")
@pytest.mark.parametrize(
    ("selection", "name"),
    [
        (Selection("zendesk", "support"), "zendesk/support"),
        (Selection(adapter="old"), "zendesk/support"),
        (Selection("fixture-forge", "forge"), "fixture-forge/forge"),
        (Selection(adapter="forge"), "fixture-forge/forge"),
        (Selection(adapter="lone"), "catalog/lone"),
    ],
)
def test_one_entry_is_reached_by_either_name(selection, name):
    """A pair or an alias: the entry is the same."""
    assert select(configuration(), selection).name == name


@pytest.mark.clause("CLI-201", "CLI-203", "CLI-205")
@pytest.mark.parametrize(
    "selection",
    [
        Selection(connector="zendesk"),
        Selection(instance="support"),
        Selection("zendesk", "support", "old"),
        Selection(connector="zendesk", adapter="old"),
        Selection(instance="support", adapter="old"),
        Selection(),
    ],
)
def test_half_a_pair_and_two_selectors_are_refused(selection):
    """Nothing is guessed: a name is of its connector."""
    error = refused(select, configuration(), selection)
    assert (error.code, error.stage, error.next_action, error.exit_status) == ("invalid_input", "arguments", "none", 2)


@pytest.mark.clause("CLI-206", "CLI-207", "CLI-064", "CLI-314")
@pytest.mark.parametrize(
    "selection",
    [
        Selection("zendesk", "nope"),
        Selection("nope", "support"),
        Selection(adapter="nope"),
        Selection(adapter=""),
        Selection("", ""),
        Selection("", "forge"),
        Selection("z" * 129, "support"),
        Selection("catalog", "nope"),
    ],
)
def test_what_is_not_configured_is_not_found(selection):
    """Whatever was typed."""
    error = refused(select, configuration(), selection)
    assert (error.code, error.stage, error.next_action) == ("not_found", "admission", "check_configuration")
    assert error.exit_status == 1


@pytest.mark.clause("CLI-204")
@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('default_instance = "zendesk/support"\n', "zendesk/support"),
        ('default_adapter = "forge"\n', "fixture-forge/forge"),
    ],
)
def test_without_a_selector_the_default_is_meant(head, name):
    """Either kind of default."""
    assert select(configuration(head), Selection()).name == name


@pytest.mark.clause("CLI-209")
def test_a_catalog_entry_without_a_connector_is_no_instance():
    """Its pair is refused by its rule; migrated, or of a known connector, it has another name."""
    error = refused(select, configuration(), Selection("catalog", "lone"))
    assert (error.code, error.data) == ("invalid_configuration", {"configuration_rule": "legacy_entry_unmigrated"})
    assert (error.stage, error.next_action) == ("configuration", "check_configuration")


@pytest.mark.clause("CLI-225", "CLI-227")
def test_a_positional_names_both():
    """Two names around one slash, each of 1 to 128 bytes."""
    assert target("zendesk/support") == Selection("zendesk", "support")
    assert target(f"{'a' * 128}/{'_-' * 64}").instance == "_-" * 64
    for text in ("zendesk", "a/b/c", "/x", "x/", "a.b/c", "a/b.c", "a /b", "é/b", f"{'a' * 129}/b", "a/b\n", ""):
        error = refused(target, text)
        assert (error.code, error.stage, error.data) == ("invalid_input", "arguments", {"field": "target"})


@pytest.mark.clause("CLI-231")
def test_what_can_be_worked_with_is_enabled_and_not_pinned():
    """A disabled connector is a matter of the configuration; a pinned program is not served."""
    assert admitted(unpinned("zendesk", "support"))
    assert refused(admitted, replace(unpinned("z", "s"), enabled=False)).code == "invalid_configuration"
    assert refused(admitted, configuration().by_alias("forge")).code == "unsupported"


TOKEN = Method("token", "A token", "token", scheme="token", identity=Identity("api", "user", "/me", "/id"))
PASSWORD = Method("password", "A password", "password")
ZENDESK = Declared("1.0.0", {"token": TOKEN}, takes_endpoint=True)
ONE = replace(unpinned("zendesk", "support"), endpoint="https://a.example")


@pytest.mark.clause("CLI-184")
def test_an_instance_has_the_profile_and_the_endpoint_that_its_connector_declares():
    """Where it says nothing of its own, and where there is one profile."""
    found = derived(unpinned("zendesk", "support"), replace(ZENDESK, endpoint="https://b.example"))
    assert (found.endpoint, found.profile, found.permissions) == ("https://b.example", "token", None)
    assert derived(ONE, ZENDESK).endpoint == "https://a.example"
    two = replace(ZENDESK, methods={"token": TOKEN, "password": PASSWORD})
    assert (derived(ONE, two).profile, derived(ONE, two).credential_revision) == (None, None)
    assert derived(replace(ONE, profile="password"), two).profile == "password"
    assert derived(unpinned("git", "here"), Declared("1.0.0")).endpoint is None


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "none"},
        {"endpoint": "http://a.example"},
        {"endpoint": "https://u:p@a.example"},
        {"endpoint": "https://a.example?q"},
    ],
)
def test_what_a_connector_cannot_have_is_refused_when_it_is_derived(change):
    """The file can be read all the same: only the connector knows."""
    assert refused(derived, replace(ONE, **change), ZENDESK).code == "invalid_configuration"


def test_a_revision_moves_with_what_it_digests_and_with_nothing_else():
    """The configuration's with every setting; the credential's with where it goes and how it authenticates."""
    one = derived(ONE, ZENDESK)
    assert len(one.configuration_revision) == len(one.credential_revision) == 64
    moved = {
        "version": derived(ONE, replace(ZENDESK, version="1.0.1")),
        "endpoint": derived(replace(ONE, endpoint="https://b.example"), ZENDESK),
        "permissions": derived(replace(ONE, permissions=Permissions(("token",))), ZENDESK),
        "method": derived(ONE, replace(ZENDESK, methods={"token": replace(TOKEN, header="X-Key")})),
        "label": derived(ONE, replace(ZENDESK, methods={"token": replace(TOKEN, label="Key", evidence_lifetime_ms=1)})),
        "words": derived(replace(ONE, description="mine", alias="a", instance_id="i"), ZENDESK),
    }
    configured = {name for name, row in moved.items() if row.configuration_revision != one.configuration_revision}
    credential = {name for name, row in moved.items() if row.credential_revision != one.credential_revision}
    assert configured == {"version", "endpoint", "permissions"}
    assert credential == {"endpoint", "method"}
    orders = [Permissions(("a", "b")), Permissions(("b", "a"))]
    assert len({derived(replace(ONE, permissions=order), ZENDESK).configuration_revision for order in orders}) == 1


def test_a_pinned_entry_keeps_the_revisions_that_it_states():
    """It is another connector's matter; its selection is digested from its pins."""
    forge = configuration().by_alias("forge")
    assert derived(forge, ZENDESK) == forge
    pins = {"path": "/opt/forge", "sha256": DIGEST, "args": []}
    assert executable_selection(forge) == digest(
        {
            "adapter": "fixture-forge",
            "executable": pins,
            "instance": "forge-local",
            "private_protocol": "connectors-private/2",
            "protocol": "v1alpha1",
            "revision": "cfg-1",
        }
    )
    assert executable_selection(unpinned("a", "b")) is None


def test_canonical_json_is_digested():
    """Sorted keys, no white space, UTF-8."""
    from hashlib import sha256

    assert digest({"b": "é", "a": [1, None]}) == sha256('{"a":[1,null],"b":"é"}'.encode()).hexdigest()


CLASH = entry(
    "support", adapter_id='"catalog"', executable='{path="/c", sha256="DIGEST", args=["--connector", "zendesk"]}'
)


@pytest.mark.clause("CLI-553")
def test_what_is_asked_goes_by_its_own_name_or_by_its_alias_beneath_its_connector():
    """An instance, an entry of a program of its own, and one of the catalog, beneath what it would be moved to."""
    catalog = CLASH.replace("DIGEST", DIGEST)
    found = parse(document(TWO + catalog.replace("support", "desk")).encode(), lambda: {"zendesk"})
    named = {text: invoked(found, text).alias for text in ("zendesk/support", "fixture-forge/forge", "zendesk/desk")}
    assert named == {"zendesk/support": "old", "fixture-forge/forge": "forge", "zendesk/desk": "desk"}
    assert refused(invoked, found, "catalog/lone").data == {"configuration_rule": "legacy_entry_unmigrated"}
    assert refused(invoked, found, "zendesk").data == {"instances": ["zendesk/desk", "zendesk/support"]}


@pytest.mark.clause("CLI-553")
def test_an_instance_has_the_name_that_a_catalog_entry_would_be_given():
    """Each has one name: the entry is reached by its alias still, and is no instance beside it."""
    found = parse(document(SUPPORT + CLASH.replace("DIGEST", DIGEST)).encode(), lambda: {"zendesk"})
    assert invoked(found, "zendesk/support").alias == invoked(found, "zendesk").alias == "old"
    assert select(found, Selection("zendesk", "support")).alias == "old"
    assert select(found, Selection(adapter="support")).pins is not None
    assert [one.alias for one in found.instances] == ["old"]
