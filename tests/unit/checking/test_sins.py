"""The check bites: a connector that keeps everything passes, and each sin is found under the clause that it breaks."""

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.catalog.folders import folder_at
from headwater.checking import Report, check
from headwater.checking.clauses import CLAUSES
from headwater.cli.answers import AnswerFile

FOLDER = Path(__file__).parents[2] / "guests" / "sins"
ANSWERS = b'{"answers": [{"kind": "otp", "data": {"code": "739105"}}]}'


class Once(socketserver.StreamRequestHandler):
    """A source that gives each thing once: it says `taken` when it is asked again."""

    def handle(self) -> None:
        """Answer one request, if anything was asked."""
        if name := self.rfile.read():
            self.wfile.write(b"taken" if name in self.server.given else b"new")
            self.server.given.add(name)


@pytest.fixture
def port() -> Iterator[int]:
    """A source on this machine: it takes connections, and remembers what it gave."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Once) as server:
        server.given = set()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def checked(tmp_path: Path, *packs: str, seed: int = 7, **options: Any) -> Report:
    """Check the guest with some options."""
    answers = tmp_path / "answers.json"
    answers.write_bytes(ANSWERS)
    prepared = (lambda: AnswerFile(answers)) if options.get("asks") else None
    return asyncio.run(check(folder_at(FOLDER), options, prepared, packs=packs, seed=seed))


def test_a_connector_that_keeps_everything_passes(tmp_path: Path, port: int) -> None:
    """No failure, no pack left out, and everything but the size of the run was shown."""
    report = checked(tmp_path, port=port, asks=True, lanes=True)
    assert report.failures == []
    assert report.conforms
    moot = {finding.clause for finding in report.findings if finding.mark == "not applicable"}
    assert moot <= {"CP-130", "CP-137", "CP-409"}
    assert {finding.clause for finding in report.findings} == CLAUSES.keys()


# A sin, the pack that finds it ("" for the rules of every run), the clause, and the options that it needs.
SINS = [
    ("prints", "", "CP-101", {}),
    ("lists", "", "CP-102", {}),
    ("invents_a_type", "", "CP-102", {}),
    ("half_a_line", "", "CP-105", {}),
    ("record_without_time", "", "CP-115", {}),
    ("record_of_another_key", "", "CP-121", {}),
    ("record_without_field", "", "CORE-016", {}),
    ("keeps_the_bytes", "", "CORE-026", {}),
    ("other_bytes", "", "CORE-026", {}),
    ("cursor_is_text", "", "CP-125", {}),
    ("cursor_of_a_child", "", "CP-126", {}),
    ("skip_of_a_number", "", "CP-130", {}),
    ("progress_without_message", "", "CP-137", {}),
    ("done_without_count", "", "CP-152", {}),
    ("speaks_after_done", "", "CP-153", {}),
    ("leaves_without_done", "", "CP-209", {}),
    ("exits_wrong", "", "CP-211", {}),
    ("counts_wrong", "", "CP-220", {}),
    ("saves_late", "", "CP-409", {}),
    ("report_without_keys", "", "CP-503", {}),
    ("report_of_a_key_too_many", "", "CP-507", {}),
    ("unaccounted", "", "CP-515", {}),
    ("no_report", "", "CP-516", {}),
    ("reports_twice", "", "CP-521", {}),
    ("report_of_a_child", "", "CP-525", {}),
    ("report_to_a_stranger", "", "CP-526", {}),
    ("gap_of_a_stranger", "", "CP-535", {}),
    ("evidence_of_a_parent", "", "CP-603", {}),
    ("evidence_that_lies", "", "CP-609", {}),
    ("measures_twice", "", "CP-611", {"lanes": True}),
    ("question_without_kind", "", "CP-700", {}),
    ("speaks_while_waiting", "", "CP-701", {"asks": True}),
    ("speaks_early", "start", "CP-200", {}),
    ("forgets_bindings", "start", "CP-058", {}),
    ("honours_strange", "start", "CP-059", {}),
    ("begins_again", "resumed", "CP-013", {}),
    ("new_keys", "determinism", "CP-119", {}),
    ("ignores_scope", "narrowed", "CP-313", {}),
    ("ignores_scope", "narrowed", "CP-317", {}),
    ("sends_all_fields", "narrowed", "CP-315", {}),
    ("until_is_inclusive", "narrowed", "CP-313", {}),
    ("since_is_exclusive", "narrowed", "CP-312", {}),
    ("skips_and_sends", "narrowed", "CP-317", {}),
    ("saves_early", "kill", "CP-410", {}),
    ("remembers", "kill", "CP-447", {"port": 0}),
    ("drops_when_slow", "slow", "CP-219", {}),
    ("ignores_sigterm", "cancelled", "CP-216", {}),
    ("dies_when_cancelled", "otp", "CP-705", {"asks": True}),
    ("dies_when_timeout", "otp", "CP-706", {"asks": True}),
    ("asks_for_ever", "", "CP-705", {"asks": True}),
    ("saves_code", "otp", "CP-408", {"asks": True}),
    ("locates_code", "otp", "CP-537", {"asks": True}),
    ("tells_progress", "otp", "CP-711", {"asks": True}),
    ("tells_stderr", "otp", "CP-711", {"asks": True}),
    ("claims_nothing", "no-network", "CP-204", {"port": 0}),
    ("dies_without_network", "no-network", "CP-214", {"port": 0}),
]


@pytest.mark.parametrize(("sin", "pack", "clause", "options"), SINS, ids=[f"{row[0]}-{row[2]}" for row in SINS])
def test_a_sin_is_found(sin: str, pack: str, clause: str, options: dict[str, Any], tmp_path: Path, port: int) -> None:
    """The clause fails, with evidence and the pack that showed it."""
    if "port" in options:
        options = {"port": port}
    report = checked(tmp_path, *([pack] if pack else ["start"]), sin=sin, **options)
    failed = {finding.clause: finding for finding in report.failures}
    assert clause in failed, report.failures
    assert failed[clause].seen
    assert pack in ("", failed[clause].pack)
    assert report.conforms is not any(finding.is_serious for finding in report.findings)
