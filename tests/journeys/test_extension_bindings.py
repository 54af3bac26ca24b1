"""Bindings of a person's own: configured for an instance, and announced as they stand."""

import json
import tomllib

import pytest

GPU = {"cores": 8, "lanes": [{"x": 1.5}, {"y": {"z": True}}], "at": "/dev/dri"}


# Its one record tells the bindings that START told it of.
TELLS = """
import json
bindings = json.dumps(json.loads(input())["bindings"])
record = {"stream": "alpha", "key": "a", "data": {"id": "a", "text": bindings}, "emitted_at": "2026-04-01T10:00:00Z"}
print(json.dumps({"type": "RECORD", **record}))
print('{"type":"DONE","status":"succeeded","records_emitted":1}', flush=True)
"""


@pytest.fixture
def gpu(headwater):
    """A connector folder that cannot do without `example.com/gpu`."""
    folder = headwater.place / "gpu"
    folder.mkdir()
    (folder / "connector.py").write_text(TELLS)
    (folder / "connector.toml").write_text('format = "headwater-connector/1"\ncommand = ["python", "connector.py"]\n')
    bindings = {"example.com/gpu": {"required": True}}
    headwater.manifest(runtime_requirements={"bindings": bindings}).rename(folder / "manifest.json")
    return folder


def told(headwater):
    """Return the bindings that the connector's last run was told of."""
    return json.loads(headwater.type("records", "get", "gpu/me", "alpha", "a").result["data"]["text"])


def written(headwater, text):
    """Write `collect.toml` as a person does."""
    path = headwater.place / "collect.toml"
    path.write_text(f'format = "headwater-collect/1"\n{text}')
    path.chmod(0o600)
    return path


@pytest.mark.clause("CP-050", "CP-053")
def test_a_configured_binding_lets_the_connector_start_and_is_told_as_it_stands(headwater, gpu):
    """Without it the connector does not start; with it START has each member as it was typed."""
    headwater.type("instances", "add", "gpu/me", "--from", str(gpu))
    refused = headwater.type("collect", "gpu/me")
    assert (refused.failure["code"], "example.com/gpu" in refused.failure["message"]) == ("binding_unavailable", True)
    said = headwater.type("instances", "add", "gpu/me", "--binding", f"example.com/gpu={json.dumps(GPU)}")
    assert said.result["bindings"] == {"example.com/gpu": GPU}
    assert headwater.type("collect", "gpu/me").status == 0
    assert told(headwater) == {"example.com/gpu": GPU}


def test_a_binding_may_be_written_by_hand_and_serves_its_instance_alone(headwater, gpu):
    """Another instance of the same connector is refused."""
    place = f'folder = "{gpu}"\n'
    mine = f'[instances."gpu/me"]\n{place}[instances."gpu/me".bindings."example.com/gpu"]\n'
    written(headwater, mine + f'[instances."gpu/other"]\n{place}')
    assert headwater.type("collect", "gpu/me").status == 0
    assert told(headwater) == {"example.com/gpu": {}}
    assert headwater.type("collect", "gpu/other").failure["code"] == "binding_unavailable"


def test_setting_one_again_replaces_it_and_keeps_every_other_byte(headwater, gpu):
    """A member that is not set again is gone; the rest of the file stays as it was."""
    mine = f"""# mine
[instances."gpu/me"] # here
folder = "{gpu}"

[instances."gpu/me".options]

[instances."gpu/me".bindings."example.com/gpu"]
cores   =  8 # all of them
old = true
[instances."gpu/me".bindings."example.com/rack"]
"""
    path = written(headwater, mine)
    assert headwater.type("instances", "add", "gpu/me", "--binding", 'example.com/gpu={"cores":8}').status == 0
    assert path.read_text().endswith(mine.replace("old = true\n", ""))
    assert tomllib.loads(path.read_text())["instances"]["gpu/me"]["bindings"]["example.com/rack"] == {}


@pytest.mark.clause("CP-011")
def test_what_is_no_binding_of_ones_own_is_refused_and_not_kept(headwater, gpu):
    """The profile's bare names are not the person's to offer."""
    refused = headwater.type("instances", "add", "gpu/me", "--from", str(gpu), "--binding", "gpu={}")
    assert (refused.status, refused.failure["code"]) == (2, "invalid_input")
    assert not (headwater.place / "collect.toml").exists()
