"""Moving legacy entries: what moves and what stays, and that nothing else of the file says anything else."""

import json
import tomllib

import pytest
from configuration.documents import DIGEST, UID, document, entry
from msgspec.structs import replace

from headwater.configuration.migrating import plan, told
from headwater.configuration.reading import parse
from headwater.errors import HeadwaterError


def shipped() -> set[str]:
    """The connectors of this build."""
    return {"forge", "git"}


def catalog(alias: str, *args: str, **members: str) -> str:
    """A legacy catalog entry that is started with some words."""
    executable = f'{{path = "/opt/catalog", sha256 = "{DIGEST}", args = {json.dumps(args)}}}'
    return entry(alias, adapter_id='"catalog"', executable=executable, **members)


def planned(text: str):
    """Plan the migration of a text."""
    return plan(text.encode(), shipped)


def reason_of(text: str) -> tuple[str, str]:
    """Return why the one entry of a text stays."""
    found = planned(text)
    assert (found.after, found.format_after) == (text.encode(), found.format_before)
    (item,) = found.items
    row = told(item)
    assert row["disposition"] == "kept"
    assert row["before"] == row["after"]
    return row["reason"], row.get("differing_field", "")


@pytest.mark.clause("CLI-1001", "CLI-1002", "CLI-1006", "CLI-1014", "CLI-1017", "CLI-1022")
@pytest.mark.parametrize("format_", [2, 3, 4, 5])
def test_an_entry_of_a_connector_of_ours_is_moved_with_its_pins(format_):
    """Identity, revisions, program and custody items stay; it is selected by its new pair and its old alias."""
    permissions = '{profiles = ["token", "other"], operations = ["x.y"]}'
    moved = catalog("work", "--connector", "forge", "--x", permissions=permissions, startup='"automatic"')
    text = document(moved + entry("lone"), format_, 'default_adapter = "work"\n')
    found = planned(text)
    before, after = parse(text.encode(), shipped), parse(found.after, shipped)
    assert (found.format_before, found.format_after) == (f"connectors-local/{format_}", "connectors-local/5")
    old, new = before.by_alias("work"), after.find("forge", "work")
    assert new == replace(old, in_adapters=False)
    assert after.by_alias("work") == new
    assert after.by_alias("lone") == before.by_alias("lone")
    assert after.default_adapter == "work"
    rows = {row["alias"]: row for row in map(told, found.items)}
    assert (rows["work"]["form"], rows["work"]["pinned_field"]) == ("pinned", "configuration_revision")
    assert (rows["work"]["connector"], rows["work"]["instance"]) == ("forge", "work")
    assert rows["work"]["before"] == rows["work"]["after"]
    assert rows["work"]["after"]["custody_items"] == ["work/token", "work/other"]
    assert (rows["lone"]["disposition"], rows["lone"]["connector"]) == ("kept", "fixture-forge")
    told_before, told_after = tomllib.loads(text), tomllib.loads(found.after.decode())
    del told_before["adapters"]["work"], told_after["connectors"]["forge"], told_after["format"], told_before["format"]
    assert told_after == {**told_before, "connectors": {}}


@pytest.mark.clause("CLI-1001")
def test_it_takes_its_place_beside_other_instances():
    """Read and write entries are not merged, and the connector's table stays."""
    text = document(
        catalog("r", "--connector", "forge")
        + catalog("w", "--connector", "forge")
        + '[connectors.forge.instances.a]\nendpoint = "https://a"\n'
    )
    found = parse(planned(text).after, shipped)
    assert sorted(row.name for row in found.instances) == ["forge/a", "forge/r", "forge/w"]
    assert found.find("forge", "a").endpoint == "https://a"


@pytest.mark.clause("CLI-1008", "CLI-1009", "CLI-1011", "CLI-1012", "CLI-1016", "CLI-1007")
def test_what_stays_says_why(tmp_path):
    """Another implementation, a connector that is not ours, one whose settings cannot be read, or one that is taken."""
    native = tmp_path / "native.json"
    native.write_text('{"provider": "openrouter"}')
    native.chmod(0o600)
    own = ("--local-config", str(native))
    assert reason_of(document(entry())) == ("implementation_unmapped", "")
    assert reason_of(document(catalog("a", "--connector", "zendesk"))) == ("connector_undeclared", "")
    assert reason_of(document(catalog("a", *own))) == ("connector_undeclared", "")
    assert reason_of(document(catalog("a"))) == ("native_configuration_unreadable", "")
    native.chmod(0o644)
    assert reason_of(document(catalog("a", *own))) == ("native_configuration_unreadable", "")
    native.chmod(0o600)
    for text in ("[]", "{}", '{"provider": 1}', "{", "[" * 9000):
        native.write_text(text)
        assert reason_of(document(catalog("a", *own))) == ("native_configuration_unreadable", "")
    mine = catalog("a", "--connector", "forge")
    assert reason_of(document(f"{mine}[connectors.forge]\nenabled = false\n")) == ("instance_conflict", "")
    taken = f"{mine}[connectors.forge.instances.a]\n"
    assert reason_of(document(taken)) == ("instance_conflict", "")
    first = catalog("a", "--connector", "forge", private_protocol="")
    assert reason_of(document(first, 1)) == ("selection_changes", "private_protocol")


@pytest.mark.clause("CLI-1018", "CLI-1019")
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        '# connectors-local/4\nformat = "connectors-local/4" # format = "connectors-local/4"\nowner_uid = UID\n',
        "  'format'='connectors-local/4'\nowner_uid = UID\n# mine\n[adapters]\n\n[custody]\nbinding='secret_service'\n",
        '\ufeffowner_uid = UID\n"format" = "connectors-local/4"',
    ],
)
def test_without_legacy_entries_the_format_alone_changes(text, line_end):
    """One digit, and every other byte stays."""
    before = text.replace("UID", str(UID)).replace("\n", line_end).encode()
    found = plan(before, shipped)
    (place,) = [place for place in range(len(before)) if before[place] != found.after[place]]
    assert (before[place : place + 1], found.after[place : place + 1]) == (b"4", b"5")
    assert (found.format_after, parse(found.after).format) == ("connectors-local/5", "connectors-local/5")
    assert plan(found.after, shipped).after == found.after


def test_a_format_that_cannot_be_found_is_not_changed():
    """Written over several lines, it is its writer's."""
    text = document().replace('"connectors-local/5"', '"""connectors-local/4"""')
    with pytest.raises(HeadwaterError) as caught:
        planned(text)
    assert caught.value.code == "invalid_configuration"


@pytest.mark.clause("CLI-1014", "CLI-060")
def test_a_file_that_would_grow_too_large_is_not_migrated():
    """Both sizes are told."""
    mine = catalog("a", "--connector", "forge")
    room = 2**20 - len(document(mine)) - len('[approval_clock]\nx = ""\n')
    text = document(mine + f'[approval_clock]\nx = "{"x" * room}"\n')
    assert len(text) == 2**20
    with pytest.raises(HeadwaterError) as caught:
        planned(text)
    told = caught.value.data
    assert (told["configuration_rule"], told["configuration_limit"]) == ("config_too_large", 2**20)
    assert told["configuration_bytes"] > 2**20
