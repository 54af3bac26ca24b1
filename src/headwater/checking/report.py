"""The check as a whole: which packs are run, and what they amount to."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import limits
from headwater.catalog.folders import ConnectorFolder
from headwater.checking.bench import Bench
from headwater.checking.findings import Finding
from headwater.checking.packs import PACKS
from headwater.checking.packs.whole import whole
from headwater.checking.rules import findings_of
from headwater.collect.ports import Respondent
from headwater.errors import refuse

_ORDER = {"fail": 0, "pass": 1, "not applicable": 2}


@dataclass(frozen=True)
class Report:
    """What a check found: failures first. `left_out` names the packs that were not run to their end, and why."""

    findings: Sequence[Finding]
    left_out: Mapping[str, str]
    seed: int
    runs: int

    @property
    def failures(self) -> list[Finding]:
        """The findings that fail, also of clauses that are no must."""
        return [finding for finding in self.findings if finding.mark == "fail"]

    @property
    def conforms(self) -> bool:
        """Whether every must held, in every pack that was asked for."""
        return not self.left_out and not any(finding.is_serious for finding in self.findings)


async def check(
    folder: ConnectorFolder,
    options: Mapping[str, Any],
    answers: Callable[[], Respondent] | None,
    *,
    packs: Sequence[str] = (),
    seed: int = 0,
    hidden: Sequence[Path] = (),
) -> Report:
    """Run a connector through the packs, all of them by default, and return what they show.

    Raise `invalid_input` for a pack that there is not.
    """
    if any(name not in PACKS for name in packs):
        known = ", ".join(PACKS)
        raise refuse("invalid_input", f"There is no such pack; there are {known}.", safe="Nothing was started.")
    wanted = list(dict.fromkeys(packs)) or list(PACKS)
    with tempfile.TemporaryDirectory(prefix="headwater-check-", ignore_cleanup_errors=True) as place:
        bench = Bench(folder, options, Path(place), answers, seed, hidden)
        first, findings = await whole(bench)
        left_out = {} if first.succeeded else dict.fromkeys(wanted, "The whole run did not succeed.")
        for name in wanted if first.succeeded else ():
            try:
                async with asyncio.timeout(limits.CHECK_PACK_SECONDS):
                    findings += await PACKS[name](bench, first)
            except TimeoutError:
                left_out[name] = f"It was not through after {limits.CHECK_PACK_SECONDS:g} seconds."
    findings += findings_of(bench.trials)
    return Report(sorted(_worst(findings), key=_place), left_out, seed, len(bench.trials))


def _worst(findings: Sequence[Finding]) -> list[Finding]:
    """Keep one finding a clause: the first that fails, or the first that was shown."""
    kept: dict[str, Finding] = {}
    for finding in findings:
        if finding.clause not in kept or _ORDER[finding.mark] < _ORDER[kept[finding.clause].mark]:
            kept[finding.clause] = finding
    return list(kept.values())


def _place(finding: Finding) -> tuple[int, int, str]:
    return _ORDER[finding.mark], not finding.is_serious, finding.clause
