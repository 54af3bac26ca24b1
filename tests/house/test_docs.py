"""The prose is true: every command parses, every file exists, every link leads somewhere, every limit is current."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from headwater import limits
from headwater.catalog.instances import Instances
from headwater.cli.main import root, take_globals
from headwater.manifest.package import read_package
from headwater.store.sqlite.database import open_database
from headwater.wire.decode import decode
from headwater.wire.messages import ConnectorMessage, RuntimeMessage

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
PAGES = [page for page in PAGES if page.name != "conformance.md"]
LAUNCHER = "./headwater "

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def commands(page: Path) -> Iterator[str]:
    """Yield each `./headwater …` of a page: lines of console and indented blocks, and spans of text."""
    text = page.read_text(encoding="utf-8")
    for line in text.splitlines():
        typed = re.fullmatch(r"(?:\$ | {4})(\./headwater .+)", line)
        if typed:
            yield typed[1]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`(\./headwater [^`]+)`", prose):
        yield span.replace("\\|", "|")


def examined(command: str) -> str:
    """Say what the command line would find wrong with a command, without running it; nothing where it fits."""
    words = shlex.split(command.removeprefix(LAUNCHER))
    words, _ = take_globals(["1" if word in ("RECEIPT", "GAP") else word.strip("[]") for word in words if word != "…"])
    group: click.Command = root
    context = click.Context(root, info_name="headwater")
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        try:
            _, found, words = group.resolve_command(context, words)
        except click.UsageError as error:
            return error.format_message()
        assert found is not None
        group = found
    try:
        group.make_context("headwater", words, resilient_parsing=False)
    except (click.exceptions.NoArgsIsHelpError, click.exceptions.Exit):
        return ""
    except click.ClickException as error:
        return error.format_message()
    return ""


def test_the_readme_has_fewer_than_500_words():
    """Somebody who reads it has not decided yet to read more."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 500


@each_page
def test_every_command_parses(page):
    """What a page tells people to type is a command that there is, with options that there are."""
    wrong = {command: fault for command in commands(page) if (fault := examined(command))}
    assert wrong == {}


@pytest.mark.parametrize("command", ["./headwater bogus", "./headwater runs explain --bogus", "./headwater state show"])
def test_a_wrong_command_is_found(command):
    """The examination itself."""
    assert examined(command) != ""


@each_page
def test_commands_are_typed_through_the_launcher(page):
    """The docs are for somebody in a checkout: a bare `headwater` may not be there."""
    assert re.findall(r"^(?:\$ | {4})headwater .*$", page.read_text(encoding="utf-8"), re.MULTILINE) == []


@each_page
def test_every_link_leads_to_a_file(page):
    """A link inside the repository is not broken."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@each_page
def test_every_file_that_is_named_exists(page):
    """A path of this repository that a page names is there."""
    spans = re.findall(r"`([^`\s]+)`", page.read_text(encoding="utf-8"))
    ours = re.compile(r"(?:src|tests|docs|examples|scripts|conformance|requirements|changelog\.d)/[\w./*-]+")
    made = {"docs/conformance.md"}
    named = [span for span in spans if ours.fullmatch(span) and span not in made]
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_every_option_that_is_named_exists():
    """An option in prose is one of some command, or of a script."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    foreign = {"--dev", "--memory", "--search", "--require-hashes", "--fast", "--import"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - options(root) <= foreign


def test_every_option_is_in_the_reference():
    """An option that no page names cannot be found."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert {name for name in options(root) if name not in page} == set()


def options(command: click.Command) -> set[str]:
    """Return every visible option of a command and of those below it."""
    context = click.Context(command)
    found = {"--config", "--state-dir", "--output", "--help"}
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            found.update(parameter.opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found |= options(below)
    return found


def test_the_limits_page_is_current():
    """Each limit stands on the page, with its value."""
    page = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", page, re.MULTILINE))
    units = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "s": 1}
    values = {}
    for name, text in shown.items():
        number, _, unit = text.replace(",", "").partition(" ")
        values[name] = float(number) * units.get(unit, 1)
    names = [name for name in vars(limits) if name.isupper() and name not in ("KIB", "MIB")]
    assert values == {name: float(getattr(limits, name)) for name in names}


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a page of the docs in one language, without their fences."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_messages_of_the_protocol_page_are_messages():
    """Whoever copies a line from the page has a line that the host reads."""
    seen = set()
    lines = [line for block in blocks("howto/write-one-without-the-sdk.md", "json") for line in _objects(block)]
    for line in lines:
        kind = json.loads(line).get("type")
        if kind in ("START", "INTERACTION_RESPONSE"):
            msgspec.json.decode(line, type=RuntimeMessage)
        elif kind is not None:
            decode(line.encode())
        seen.add(kind)
    assert len(seen & {kind.__struct_config__.tag for kind in ConnectorMessage.__args__}) >= 6


def _objects(block: str) -> list[str]:
    """Return a block's objects: one a line, or one over several lines."""
    return [block] if block.count('"type"') < 2 else block.splitlines()


def test_the_query_of_the_records_page_runs(tmp_path):
    """The tables are as the page has them."""
    (query,) = blocks("howto/look-at-records.md", "sql")
    connection = open_database(tmp_path / "headwater.db")
    assert connection.execute(query).fetchall() == []
    connection.close()


def test_the_files_of_the_reference_are_read(tmp_path):
    """What the page shows as a `connector.toml` and a `collect.toml` are such."""
    collect, connector = blocks("reference/files.md", "toml")
    assert read_package(connector.encode()).environment == ("JOURNAL_EDITOR",)
    path = tmp_path / "collect.toml"
    path.touch(mode=0o600)
    path.write_text(collect)
    assert set(Instances(path).all()) == {"git/notes", "journal/me"}


@pytest.mark.parametrize("page", ["howto/write-a-connector.md", "HACKING.md"])
def test_the_python_of_a_page_is_python(page):
    """Each piece parses."""
    pieces = blocks(page, "python")
    assert pieces
    for piece in pieces:
        ast.parse(piece)


CAUSE_CALLS = re.compile(r'(?:NotAMessage\(|\.stop\(|Verdict\("\w+", |_break\()\s*"([a-z_0-9]+)"')
REASON_CALLS = re.compile(r'(?:\.refuse\(|Receipt\(\s*name, |Withheld\(stream, |_none\([\w.]+, )"([a-z_]+)"')


@pytest.mark.parametrize("pattern", [CAUSE_CALLS, REASON_CALLS], ids=["causes", "reasons"])
def test_every_cause_and_reason_is_explained(pattern):
    """Whatever a run may give as its cause has a row on the page about failed runs."""
    page = (ROOT / "docs" / "howto" / "when-a-run-fails.md").read_text(encoding="utf-8")
    rooms = ("collect", "wire", "store")
    sources = [path for room in rooms for path in (ROOT / "src" / "headwater" / room).rglob("*.py")]
    named = {name for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))}
    # `succeeded` is no failure; no run starts before START, and no face starts a single-use run yet.
    named -= {"succeeded", "before_start", "single_use"}
    assert len(named) > 7
    assert {name for name in named if f"`{name}`" not in page} == set()


def test_the_commands_of_the_readme_work(tmp_path):
    """Those that need nothing but the checkout are run, as far as they are offline: the demo, git, looking."""
    elsewhere = r"browser_history/|connect github/|collect github/"
    typed_ = [command for command in commands(ROOT / "README.md") if not re.search(elsewhere, command)]
    assert "./headwater demo" in typed_
    assert "./headwater collect git/here --set path=." in typed_
    repository = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run([*repository, "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run([*repository, "commit", "-q", "--allow-empty", "-m", "First"], cwd=tmp_path, check=True)
    environment = {"HOME": str(tmp_path / "home"), "PATH": os.defpath}
    for command in dict.fromkeys(typed_):
        words = [sys.executable, "-m", "headwater", *shlex.split(command.removeprefix(LAUNCHER))]
        result = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=90)
        assert result.returncode == 0, f"{command}\n{result.stderr}"
