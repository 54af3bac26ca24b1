"""Reading a manifest: what is refused, at which place, and what a good one becomes."""

import json
from typing import Any

import pytest

from headwater import limits
from headwater.errors import UsageError
from headwater.manifest.declaration import STANDARD_BINDINGS, Declaration
from headwater.manifest.graph import CheckpointGraph
from headwater.manifest.reading import examine, read

FIRST_REVISION = {
    "protocol_version": "0.1.0",
    "connector_id": "https://registry.pdpp.org/connectors/spotify",
    "version": "2.0.0",
    "display_name": "Spotify",
    "runtime_requirements": {"bindings": {"network": {"required": True}, "interactive": {"required": True}}},
    "capabilities": {"human_interaction": ["credentials", "otp"]},
    "streams": [{"name": "top_artists", "incremental": True}],
}
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "at": {"type": "string"}}, "required": ["id"]}


def manifest(**members: Any) -> bytes:
    """Write a manifest of one stream, with members replaced."""
    return json.dumps({"connector_id": "example", "streams": [{"name": "alpha"}], **members}).encode()


def of_stream(**members: Any) -> bytes:
    """Write a manifest whose one stream has these members."""
    return manifest(streams=[{"name": "alpha", "semantics": "mutable_state", **members}])


def of_binding(name: str, options: Any) -> bytes:
    """Write a manifest that asks for one binding."""
    return manifest(runtime_requirements={"bindings": {name: options}})


def faults(document: bytes) -> list[tuple[str, str]]:
    """Return the place and rule of each fault; a refusal without a fault, or the reverse, fails the test."""
    declaration, found = examine(document)
    assert (declaration is None) == bool(found)
    return [(fault.pointer, fault.rule) for fault in found]


def accepted(document: bytes) -> Declaration:
    """Read a manifest that must be good."""
    assert faults(document) == []
    return read(document)


# The document


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
        pytest.param(b'{"connector_id":"\xff"}', id="not UTF-8"),
        pytest.param(b'{"connector_id":"\\ud800"}', id="half a surrogate pair"),
        pytest.param(b"[" * 100_000, id="nested arrays"),
        pytest.param(b'{"a":' * 5_000, id="nested objects"),
        pytest.param(b'{"n":' + b"9" * 6_000 + b"}", id="a number without end"),
        pytest.param(b'{"n":NaN}', id="NaN"),
    ],
)
def test_what_is_not_json_is_refused_whole(document: bytes) -> None:
    """A document that is not JSON is one fault at its root, never a crash."""
    assert faults(document) == [("", "json")]


@pytest.mark.parametrize("document", [b"null", b"[]", b'"x"', b"3"])
def test_a_manifest_is_an_object(document: bytes) -> None:
    """JSON of another kind is refused."""
    assert faults(document) == [("", "type")]


def test_a_manifest_has_a_size_bound() -> None:
    """One byte over the bound is refused unread; the bound itself is not."""
    filled = manifest().ljust(limits.MANIFEST_BYTES)
    accepted(filled)
    assert faults(filled + b" ") == [("", "size")]


def test_every_fault_is_reported_at_once() -> None:
    """The refusal lists every fault with its pointer, so that one reading is enough to mend a manifest."""
    document = json.dumps(
        {
            "protocol_version": "1.0.0",
            "runtime_requirements": {"bindings": {"a~b": {"required": 1}}},
            "connector_id": "",
            "streams": [3, {"name": "*", "semantics": "log", "incremental": "yes"}],
        }
    ).encode()
    with pytest.raises(UsageError) as refusal:
        read(document)
    assert refusal.value.code == "invalid_manifest"
    assert {(fault["pointer"], fault["rule"]) for fault in refusal.value.data["faults"]} == {
        ("/protocol_version", "protocol_version"),
        ("/connector_id", "type"),
        ("/runtime_requirements/bindings/a~0b", "reserved_name"),
        ("/runtime_requirements/bindings/a~0b", "required"),
        ("/streams/0", "type"),
        ("/streams/1/name", "wildcard"),
        ("/streams/1/semantics", "enum"),
        ("/streams/1/incremental", "type"),
    }


def test_a_long_list_of_faults_is_shortened_for_people_only() -> None:
    """Eight faults stand in the sentence, all of them in the data."""
    with pytest.raises(UsageError) as refusal:
        read(manifest(streams=[None] * 20))
    assert "(and 12 more)" in refusal.value.message
    assert len(refusal.value.data["faults"]) == 20


@pytest.mark.parametrize("version", ["0.1", "0.1.1", "1.0.0", "", None, 0.1, []])
def test_another_protocol_version_is_refused(version: Any) -> None:
    """A manifest of another protocol is not guessed at; one that names none is of the first revision."""
    assert faults(manifest(protocol_version=version)) == [("/protocol_version", "protocol_version")]
    accepted(manifest(protocol_version="0.1.0"))


# Bindings and capabilities


@pytest.mark.clause("CP-010")
@pytest.mark.parametrize("options", [True, [], None, "required", {}, {"required": "yes"}, {"required": 1}])
def test_a_binding_is_an_object_with_a_boolean_required(options: Any) -> None:
    """Anything else under a binding's name refuses the manifest."""
    place = "/runtime_requirements/bindings/network"
    assert [pointer for pointer, _ in faults(of_binding("network", options))] == [place]


@pytest.mark.clause("CP-010")
@pytest.mark.parametrize("name", sorted(STANDARD_BINDINGS))
@pytest.mark.parametrize("required", [True, False])
def test_the_standard_bindings_are_accepted(name: str, required: bool) -> None:
    """Each of the profile's bindings may be required or wished for."""
    declaration = accepted(of_binding(name, {"required": required}))
    assert declaration.bindings[name].required is required
    assert declaration.required_bindings == ({name} if required else set())


@pytest.mark.clause("CP-011")
def test_a_bare_binding_name_outside_the_registry_is_reserved() -> None:
    """`gpu` is refused as a bare name; `example.com/gpu` is kept with its own options."""
    assert faults(of_binding("gpu", {"required": False})) == [("/runtime_requirements/bindings/gpu", "reserved_name")]
    binding = accepted(of_binding("example.com/gpu", {"required": True, "cores": 8})).bindings["example.com/gpu"]
    assert (binding.required, binding.options) == (True, {"cores": 8})


@pytest.mark.parametrize("value", [None, [], "network"])
def test_requirements_that_are_no_object_are_refused(value: Any) -> None:
    """Neither the requirements nor the bindings in them may be of another kind."""
    assert faults(manifest(runtime_requirements=value)) == [("/runtime_requirements", "type")]
    assert faults(manifest(runtime_requirements={"bindings": value})) == [("/runtime_requirements/bindings", "type")]


@pytest.mark.clause("CP-012")
@pytest.mark.parametrize("kinds", ["otp", None, {}, ["sms"], ["otp", 3], ["otp", ""], ["credentials", "OTP"]])
def test_an_unknown_kind_of_interaction_is_refused(kinds: Any) -> None:
    """What a connector may ask of a person is a closed list."""
    places = [pointer for pointer, _ in faults(manifest(capabilities={"human_interaction": kinds}))]
    assert places == ["/capabilities/human_interaction"]


@pytest.mark.clause("CP-012")
@pytest.mark.parametrize(
    "kinds", [[], ["credentials"], ["otp"], ["manual_action"], ["manual_action", "otp", "credentials"]]
)
def test_each_kind_of_interaction_is_accepted(kinds: list[str]) -> None:
    """Each kind alone, all of them and none are fine."""
    assert accepted(manifest(capabilities={"human_interaction": kinds})).human_interaction == set(kinds)


# Streams


@pytest.mark.parametrize("streams", [None, {}, [], "alpha"])
def test_a_manifest_declares_at_least_one_stream(streams: Any) -> None:
    """No list, or an empty one, is refused."""
    assert faults(manifest(streams=streams)) == [("/streams", "type")]


def test_the_number_of_streams_is_bounded() -> None:
    """One stream more than the bound refuses the manifest."""
    streams = [{"name": f"s{number}"} for number in range(limits.STREAMS_PER_MANIFEST + 1)]
    assert faults(manifest(streams=streams)) == [("/streams", "size")]
    assert len(accepted(manifest(streams=streams[:-1])).streams) == limits.STREAMS_PER_MANIFEST


@pytest.mark.clause("CORE-104")
@pytest.mark.parametrize("name", ["", None, 3, "*"])
def test_a_stream_name_that_is_none_is_refused(name: Any) -> None:
    """An empty name, a name of another type and the wildcard are refused where they stand."""
    assert [pointer for pointer, _ in faults(manifest(streams=[{"name": name}]))] == ["/streams/0/name"]


@pytest.mark.clause("CORE-104")
@pytest.mark.parametrize("names", [["alpha", "beta", "beta"], ["alpha", "beta", "gamma", "beta", "beta"]])
def test_a_repeated_stream_name_is_refused(names: list[str]) -> None:
    """Two streams of one name, or three, are refused once, at the first."""
    assert faults(manifest(streams=[{"name": name} for name in names])) == [("/streams/1/name", "unique")]


@pytest.mark.clause("CP-013")
@pytest.mark.parametrize("value", ["yes", 1, 0, None, []])
def test_incremental_is_a_boolean(value: Any) -> None:
    """Nothing but true and false says whether a stream can resume."""
    assert faults(of_stream(incremental=value)) == [("/streams/0/incremental", "type")]


@pytest.mark.clause("CP-013")
@pytest.mark.parametrize(
    ("members", "answer"), [({}, None), ({"incremental": True}, True), ({"incremental": False}, False)]
)
def test_incremental_may_be_absent(members: dict[str, bool], answer: bool | None) -> None:
    """True, false and absent are three different answers."""
    assert accepted(of_stream(**members)).streams["alpha"].incremental is answer


@pytest.mark.parametrize("semantics", ["log", "", None, 3, "APPEND_ONLY"])
def test_unknown_semantics_are_refused(semantics: Any) -> None:
    """A stream is append_only or mutable_state, and nothing else."""
    assert [pointer for pointer, _ in faults(of_stream(semantics=semantics))] == ["/streams/0/semantics"]
    for known in ("append_only", "mutable_state"):
        assert accepted(of_stream(semantics=known)).streams["alpha"].semantics == known


@pytest.mark.clause("CORE-107")
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("primary_key", ["ghost"]),
        ("primary_key", ["id", "ghost"]),
        ("primary_key", "ghost"),
        ("cursor_field", "ghost"),
        ("consent_time_field", "ghost"),
    ],
)
def test_a_field_outside_the_schema_is_refused(member: str, value: Any) -> None:
    """The key and the two times name fields that the schema has."""
    assert faults(of_stream(schema=SCHEMA, **{member: value})) == [(f"/streams/0/{member}", "unknown_field")]


@pytest.mark.clause("CORE-107")
def test_declared_fields_are_accepted_and_the_times_may_be_absent() -> None:
    """A stream needs neither of the two time fields."""
    named = {"primary_key": ["id"], "cursor_field": "at", "consent_time_field": "at"}
    stream = accepted(of_stream(schema=SCHEMA, **named)).streams["alpha"]
    assert (stream.primary_key, stream.cursor_field, stream.consent_time_field) == (("id",), "at", "at")
    assert stream.essential_fields == {"id", "at"}
    bare = accepted(of_stream(schema=SCHEMA, primary_key=["id"])).streams["alpha"]
    assert (bare.cursor_field, bare.consent_time_field) == (None, None)


@pytest.mark.parametrize("key", [[], ["id", "id"], "", [3], None, {}])
def test_a_primary_key_names_fields_once_each(key: Any) -> None:
    """An empty key, a repeated part and a part that is no name are refused."""
    assert {pointer for pointer, _ in faults(of_stream(primary_key=key))} == {"/streams/0/primary_key"}


# What earlier manifests and identities become


@pytest.mark.clause("CP-900", "CP-018")
def test_a_manifest_of_the_first_revision_reads_unchanged() -> None:
    """Its streams know no dependency and cover themselves."""
    declaration = accepted(json.dumps(FIRST_REVISION).encode())
    graph = CheckpointGraph(declaration.streams)
    assert graph.checkpoint_streams == {"top_artists"}
    assert graph.parents("top_artists") == ("top_artists",)
    assert declaration.required_bindings == {"network", "interactive"}


@pytest.mark.clause("CP-906")
def test_a_connector_id_is_kept_letter_for_letter() -> None:
    """The same path on two hosts, and any other spelling, are different connectors; none is rewritten."""
    tails = ("/connectors/spotify", "/connectors/spotify/", "/connectors/Spotify", "/connectors/%73potify")
    ids = [f"https://registry.pdpp.{host}{tail}" for host in ("org", "dev") for tail in tails]
    assert [accepted(manifest(connector_id=name)).connector_id for name in ids] == ids


@pytest.mark.parametrize("connector_id", ["", None, 7, []])
def test_a_connector_without_an_id_is_refused(connector_id: Any) -> None:
    """An id is a non-empty string."""
    assert faults(manifest(connector_id=connector_id)) == [("/connector_id", "type")]


def test_the_short_name_is_fit_for_a_path() -> None:
    """Whatever the id holds, the short name has plain letters and an end."""
    ids = {"https://x.dev/c/spotify/": "spotify", "a/b c\u00e9": "b-c-", "///": "connector", "x/" + "n" * 99: "n" * 64}
    assert {name: accepted(manifest(connector_id=name)).short_name for name in ids} == ids
