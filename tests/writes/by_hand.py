"""A write as a person does it at the command line: a policy once, then three steps for each write."""

import json
from pathlib import Path
from typing import Any

from journeys.conftest import Answer, Headwater
from writes.strict import strict_folder


def permit(headwater: Headwater, name: str, *operations: str) -> None:
    """Make a key, and publish a policy for the first time."""
    assert headwater.type("approvals", "key-init").status == 0
    document = headwater.place / "policy.json"
    document.write_text(json.dumps({"operations": operations}))
    assert headwater.type("approvals", "policy-set", name, "--input-file", str(document)).status == 0


def approve(headwater: Headwater, name: str, operation: str, given: Any) -> Path:
    """Prepare and approve a write, and return the file of the approval."""
    folder = strict_folder(headwater.place)
    proof = folder / str(len(list(folder.iterdir())))
    words = [name, operation, "--input-json", json.dumps(given)]
    digest = headwater.type("approvals", "prepare", *words).result["preparation"]["subject_sha256"]
    issue = ["--approve-subject", digest, "--proof-output", str(proof)]
    assert headwater.type("approvals", "issue", *words, *issue).status == 0
    return proof


def write(headwater: Headwater, name: str, operation: str, given: Any, proof: Path | None = None) -> Answer:
    """Do a write, with a new approval where none is given."""
    approval = ["--approval-file", str(proof or approve(headwater, name, operation, given))]
    return headwater.type("invoke", name, operation, "--input-json", json.dumps(given), *approval)
