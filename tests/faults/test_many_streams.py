"""Memory with very many streams: bounded, and not a question of how many records come."""

import sys
from pathlib import Path

from faults.machine import Place

GUEST = Path(__file__).parents[1] / "guests" / "many_streams.py"
MIB = 1024 * 1024
STREAMS = 500


def collect(folder, hosts, records):
    """Collect from all the streams and return the host's most bytes of memory."""
    properties = {f"f{n}": {"type": ["string", "null"], "maxLength": 2_000} for n in range(20)}
    schema = {"type": "object", "properties": {"id": {"type": "string"}, **properties}, "required": ["id"]}
    common = {"primary_key": ["id"], "semantics": "mutable_state", "incremental": True, "schema": schema}
    folder.mkdir()
    place = Place(folder, hosts, [{"name": f"s{n}", **common} for n in range(STREAMS)])
    place.collect(sys.executable, "-SE", str(GUEST), str(STREAMS), str(records))
    end = place.hosts.end()
    assert end.status == 0, place.hosts.said
    assert place.ask("SELECT count(*) FROM records") == [(STREAMS * records,)]
    assert place.ask("SELECT count(*) FROM checkpoints") == [(STREAMS,)]
    return end.memory


def test_memory_with_500_streams_does_not_grow_with_their_records(tmp_path, hosts):
    """Four times the records cost no more than a little, and the whole stays small."""
    few, many = (collect(tmp_path / str(records), hosts, records) for records in (10, 40))
    assert many < 160 * MIB
    assert many - few < 24 * MIB
