"""Bindings that a person configures: namespaced, and what both JSON and the file can say."""

import pytest

from headwater.catalog.extensions import typed_extensions
from headwater.catalog.instances import Instance, Instances
from headwater.errors import HeadwaterError

GPU = {"cores": 8, "lanes": [{"x": 1.5}, {"y": {"z": True}}], "at": "/dev/dri", "least": -(2**63) + 1}


def test_what_was_typed_is_read_back_as_it_was(tmp_path):
    """Tables in lists and lists in tables come back whole, beside what else the instance has."""
    text = '{"cores":8,"lanes":[{"x":1.5},{"y":{"z":true}}],"at":"/dev/dri","least":-9223372036854775807}'
    bindings = typed_extensions([f"example.com/gpu={text}", "example.com/tools/rack={}"])
    assert bindings == {"example.com/gpu": GPU, "example.com/tools/rack": {}}
    instances = Instances(tmp_path / "collect.toml")
    instances.add(Instance("a/b", {"x": 1}, schedule={"every": "6h"}))
    instances.set_schedule("a/b", {"every": "6h"})
    instances.add(Instance("a/b", {"x": 1}, bindings=bindings))
    assert instances.all() == {"a/b": Instance("a/b", {"x": 1}, schedule={"every": "6h"}, bindings=bindings)}


@pytest.mark.clause("CP-011")
@pytest.mark.parametrize(
    "setting",
    ["gpu={}", "network={}", "headwater.dev/optional-skip-keys={}", "/x={}", "a/={}", "a b/c={}", 'a/"={}', "é/c={}"]
    + [f"example.com/gpu{rest}" for rest in ("", "=", "=1", "=[]", '={"a":null}', '={"a":[{"b":null}]}', "={} x")]
    + ['example.com/gpu={"a":9223372036854775808}', 'example.com/gpu={"a":' + "[" * 9000 + "]" * 9000 + "}"],
)
def test_what_is_no_binding_of_ones_own_is_refused(setting):
    """The profile's names, Headwater's, and what a file cannot hold are not the person's to offer."""
    with pytest.raises(HeadwaterError) as refused:
        typed_extensions([setting])
    assert refused.value.code == "invalid_input"


@pytest.mark.parametrize(
    "bindings",
    [
        "{network = {}}",
        "{gpu = {}}",
        '{"headwater.dev/x" = {}}',
        '{"example.com/gpu" = 1}',
        "1",
        '{"example.com/gpu" = {a = 2026-11-30}}',
        '{"example.com/gpu" = {a = nan}}',
        '{"example.com/gpu" = {a = [{b = -inf}]}}',
        '{"example.com/gpu" = {a = 0xffffffffffffffffff}}',
        "[" * 5000,
    ],
)
def test_a_file_with_a_binding_that_is_none_is_refused(tmp_path, bindings):
    """What JSON cannot say, or a name that is taken, makes the file one that cannot be used."""
    path = tmp_path / "collect.toml"
    path.write_text(f'format = "headwater-collect/1"\n[instances."gpu/me"]\nbindings = {bindings}\n')
    path.chmod(0o600)
    with pytest.raises(HeadwaterError) as refused:
        Instances(path).all()
    assert refused.value.code == "invalid_configuration"
