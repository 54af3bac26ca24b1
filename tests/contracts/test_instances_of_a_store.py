"""Who an instance is: connectors of one short name never mix, nor do two instances of one connector."""

import asyncio

import pytest
from contracts.awaited import Awaited

from headwater.collect.effects import Keep
from headwater.collect.plan import RunPlan, plan_scope
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger
from headwater.store.sqlite.reading import Reader

ORG, DEV = "https://registry.pdpp.org/connectors/flat", "https://registry.pdpp.dev/connectors/flat"
NAMES = [(ORG, "flat", "me"), (DEV, "flat", "me"), (ORG, "other", "me"), (ORG, "flat", "you")]


async def write_one(folder, number, connector_id, connector, name):
    declaration = Declaration(connector_id, "1", "Flat", {"alpha": Stream("alpha", primary_key=("id",))})
    blobs = BlobFolder(folder / "blobs")
    ledger = Awaited(SqliteLedger(open_database(folder / "h.db"), InstanceName(connector_id, connector, name), blobs))
    await ledger.begin(RunPlan(f"run_{number}", declaration, plan_scope(declaration)))
    await ledger.write([Keep("alpha", f"k{number}", "2026-11-30T00:00:00Z", None, "{}", None)])
    await ledger.close()


@pytest.mark.clause("CP-906", "CORE-031")
def test_equal_names_of_two_connectors_never_mix(tmp_path):
    """Two ids with one short name, and one id under two names, are instances of their own, run after run."""
    for number, names in enumerate([*NAMES, *NAMES]):
        asyncio.run(write_one(tmp_path, number, *names))
    connection = open_database(tmp_path / "h.db", readonly=True)
    rows = Reader(connection).instances()
    connection.close()
    assert [row["records"] for row in rows] == [2, 2, 2, 2]
    shown = {(row["connector_id"], row["connector"].partition("-")[0], row["name"]) for row in rows}
    assert shown == set(NAMES)
    assert len({(row["connector"], row["name"]) for row in rows}) == len(NAMES)
