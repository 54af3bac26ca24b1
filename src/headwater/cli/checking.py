"""`headwater connectors check`: a connector in any language, run through faults, clause by clause."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater.cli.output import clip, table
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.checking import Finding, Report
    from headwater.collect.ports import Respondent


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--pack", "packs", multiple=True, metavar="NAME", help="Only this pack. May be repeated.")
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE", help="Set an option for the runs.")
@click.option("--answer-file", type=click.Path(path_type=Path), help="Answers for each run, in order.")
@click.option("--seed", type=click.IntRange(0), help="Kill at the lines that this number gives.")
@pass_cli
def check(
    cli: Cli, path: Path, packs: tuple[str, ...], settings: tuple[str, ...], answer_file: Path | None, seed: int | None
) -> None:
    """Run a connector through faults without storing anything, and say clause by clause what conforms.

    Options come from `fixtures/options.json` in its folder and from --set; answers to its questions from
    `fixtures/answers.json` or --answer-file. The packs: start, resumed, determinism, narrowed, kill, slow,
    cancelled, otp, no-network; all of them without --pack.

    Exit status: 0 it conforms, 1 it does not, 2 the folder cannot be used.
    """
    import asyncio

    report = asyncio.run(cli.host.check(path, settings, _answers(path, answer_file), packs=packs, seed=seed))
    rows = [_row(finding) for finding in report.findings]
    result: dict[str, Any] = {
        "conforms": report.conforms,
        "seed": report.seed,
        "runs": report.runs,
        "left_out": dict(report.left_out),
    }
    if not report.conforms:
        count = sum(finding.is_serious for finding in report.findings)
        message = f"The connector does not conform yet: {count} of {len(rows)} clauses fail."
        safe = f"Nothing was stored. With --seed {report.seed} it is killed at the same lines again."
        raise refuse("not_conforming", message, safe=safe, **result, clauses=rows, explanation=[*_failures(report)])
    cli.output.result({**result, "clauses": rows}, lambda: _table(report))


def _answers(path: Path, given: Path | None) -> "Callable[[], Respondent] | None":
    from headwater.cli.answers import AnswerFile

    file = given or path / "fixtures" / "answers.json"
    return None if given is None and not file.exists() else lambda: AnswerFile(file)


def _row(finding: "Finding") -> dict[str, Any]:
    row = finding.row
    shown: dict[str, Any] = {
        "clause": finding.clause,
        "level": row.level,
        "verdict": finding.mark,
        "pack": finding.pack,
    }
    shown |= {"what": row.asks, "seen": finding.seen, "line": finding.line}
    return {**shown, "remedy": finding.to_do} if finding.mark == "fail" else shown


def _failures(report: "Report") -> Iterator[str]:
    for finding in report.failures:
        level = "" if finding.is_serious else f" ({finding.row.level})"
        line = "" if finding.line is None else f", line {finding.line}"
        yield f"{finding.clause}{level}  {finding.row.asks}"
        yield f"    seen in {finding.pack}{line}: {finding.seen}"
        yield f"    do: {finding.to_do}"
    for why in dict.fromkeys(report.left_out.values()):
        yield f"Not run: {', '.join(pack for pack in report.left_out if report.left_out[pack] == why)}. {why}"


def _table(report: "Report") -> Iterator[str]:
    yield from _failures(report)
    shown = [{**_row(finding), "seen": clip(finding.seen, 70)} for finding in report.findings if finding.mark == "pass"]
    columns = {"clause": "clause", "verdict": "verdict", "what": "what it asks", "seen": "what was seen"}
    yield from table(shown, columns, empty="")
    moot = [finding.clause for finding in report.findings if finding.mark == "not applicable"]
    yield f"{len(shown)} clauses passed in {report.runs} runs; {len(moot)} do not apply or were not shown."
    yield f"Seed: {report.seed}"
