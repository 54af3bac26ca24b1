"""`headwater approvals`: what may be written at all, and the approval of one write."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from headwater import limits
from headwater.cli.document import business, policy_document
from headwater.cli.output import pairs, plain, table, typed
from headwater.cli.selection import Command, SelectingGroup, selected, selectors
from headwater.cli.session import Cli, pass_cli
from headwater.errors import HeadwaterError, refuse

if TYPE_CHECKING:
    from headwater.configuration.selecting import Selection
    from headwater.joining.operating import Aimed

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_NAMED: Final = re.compile(r"[!-~]{1,128}")


@click.group(cls=SelectingGroup)
def approvals() -> None:
    """What may be written at a service at all, and the approval of one write."""


def on_instance(command: Command) -> Command:
    """Give a command the `selection` of an instance; a refusal of it names `adapter` (CLI-706)."""

    @wraps(command)
    def run(
        *, target: str | None, connector: str | None, instance: str | None, adapter: str | None, **rest: Any
    ) -> Any:
        return command(selection=_selection([connector, instance, adapter], target), **rest)

    return click.argument("target", required=False, metavar="[<connector>/<instance>]")(selectors(run))


def _selection(options: list[str | None], target: str | None) -> Selection:
    connector, instance, adapter = options
    try:
        return selected(connector, instance, adapter, target)
    except HeadwaterError as error:
        error.data.setdefault("field", "adapter")
        raise


def of_a_write(command: Command) -> Command:
    """Give a command the write that it is about: the operation, its pins and connection, and `given`, its input.

    The instance and the operation are told apart by the slash of a name, in whichever order they are typed.

    The input is read before anything is looked at, and handed on undecoded: what is wrong with it is `invalid_input`
    (CLI-022, CLI-708).
    """

    @wraps(command)
    def run(
        *, words: tuple[str, ...], input_json: str | None, input_file: str | None, input_stdin: bool, **rest: Any
    ) -> Any:
        given = business(input_json, input_file, stdin=input_stdin)
        selection, operation = _selected(words, [rest.pop(name) for name in ("connector", "instance", "adapter")])
        _fitting(operation, "operation", _NAMED)
        _fitting(rest["reference"], "connection", _NAMED)
        pins = {name: rest.pop(name) for name in ("schema", "revision")}
        for name, pin in pins.items():
            _fitting(pin, name, _DIGEST)
        return command(selection=selection, operation=operation, given=given, pins=tuple(pins.values()), **rest)

    for name, help_ in (
        ("--input-stdin", "Read it from stdin."),
        ("--input-file", "Read it from a file."),
        ("--input-json", "What the operation is given."),
    ):
        is_flag = name == "--input-stdin"
        run = click.option(name, is_flag=is_flag, metavar=None if is_flag else "VALUE", help=help_)(run)
    run = click.option("--revision", metavar="DIGEST", help="Only if the description is still this one.")(run)
    run = click.option("--schema", metavar="DIGEST", help="Only if the operation's schema is still this one.")(run)
    run = click.option("--connection", "reference", metavar="REF", help="The connection, if there are several.")(run)
    words = click.argument("words", nargs=-1, required=True, metavar="[<connector>/<instance>] OPERATION")
    return words(selectors(run))


def _selected(words: tuple[str, ...], options: list[str | None]) -> tuple[Selection, str]:
    """Return the instance and the operation that are meant."""
    names = [word for word in words if "/" in word]
    others = [word for word in words if "/" not in word]
    if len(names) > 1 or len(others) != 1:
        raise click.UsageError("an instance and an operation", click.get_current_context())
    return _selection(options, names[0] if names else None), others[0]


@approvals.command()
@of_a_write
@pass_cli
def prepare(
    cli: Cli,
    selection: Selection,
    operation: str,
    reference: str | None,
    pins: tuple[str | None, str | None],
    given: Any,
) -> None:
    """Show exactly what one write would do, and the digest to approve it by. Nothing is approved or sent.

    Exit status: 0, 1 where it cannot be approved, 2 where what was typed or given does not fit.
    """
    aimed, preparation = cli.host.approving.prepare(selection, operation, pins, reference, given)
    told = {**_names(aimed), "preparation": cli.host.approving.told(aimed, preparation, given)}
    then = f"approvals issue {aimed.target.name} {operation} --approve-subject {preparation.sha256}"
    next_ = f"  Next, with the same input: {typed('headwater')} {then} --proof-output PATH"
    cli.output.result(told, lambda: [*described(cli, told["preparation"]), next_])


@approvals.command()
@of_a_write
@click.option("--approve-subject", "approved", required=True, metavar="DIGEST", help="The digest that you have seen.")
@click.option("--proof-output", "output", required=True, metavar="PATH", help="The new file for the approval.")
@pass_cli
def issue(
    cli: Cli,
    selection: Selection,
    operation: str,
    reference: str | None,
    pins: tuple[str | None, str | None],
    given: Any,
    approved: str,
    output: str,
) -> None:
    """Approve one write, once, for the next five minutes; the approval goes to a new file.

    Exit status: 0, 1 where it cannot be approved, 2 where what was typed or given does not fit.
    """
    _fitting(approved, "approve_subject", _DIGEST)
    aimed, reference_ = cli.host.approving.issue_to(selection, (operation, pins, reference), given, approved, output)
    told = {**_names(aimed), "reference": reference_, "subject_sha256": approved, "disposition": "published"}
    then = f"invoke {aimed.target.name} {operation} --approval-file {output}"
    next_ = f"  Next, with the same input, within five minutes: {typed('headwater')} {plain(then)}"
    cli.output.result(told, lambda: [*pairs(told), next_])


@approvals.command("policy-status")
@on_instance
@pass_cli
def policy_status(cli: Cli, selection: Selection) -> None:
    """Show which writes of an instance may be approved. Exit status: 0, or 1 where there is no such instance."""
    told = cli.host.approving.policy_status(selection)
    cli.output.result(told, lambda: _policy(told))


@approvals.command("policy-set")
@on_instance
@click.option("--input-file", required=True, metavar="PATH", help='The policy: {"operations": ["..."]}; - is stdin.')
@click.option("--expected-revision", "expected", metavar="N", help="The revision that you have seen, if there is one.")
@pass_cli
def policy_set(cli: Cli, selection: Selection, input_file: str, expected: str | None) -> None:
    """Publish which writes of an instance may be approved, in the place of what was published before.

    Exit status: 0, 1 where it cannot be published, 2 where what was typed or the document does not fit.
    """
    operations = policy_document(input_file)
    _fitting(expected, "expected_revision", _REVISION)
    told = cli.host.approving.policy_set(selection, operations, expected)
    cli.output.result(told, lambda: _policy(told))


@approvals.command()
@on_instance
@click.option("--limit", type=click.IntRange(1, limits.CONNECTION_PAGE_MAX), default=25, help="How many (default 25).")
@pass_cli
def attempts(cli: Cli, selection: Selection, limit: int) -> None:
    """List the newest writes of an instance, and what became of each. Exit status: 0."""
    told = cli.host.approving.attempts(selection, limit)
    columns = {"at": "when", "operation": "operation", "classification": "what became of it", "code": "code"}
    rows = [{**row, "code": row.get("cause", {}).get("code")} for row in told["attempts"]]
    cli.output.result(told, lambda: table(rows, columns, empty="Nothing was ever written with this instance."))


@approvals.command("clock-check")
@on_instance
@pass_cli
def clock_check(cli: Cli, selection: Selection) -> None:
    """Show which time approvals are given at, and by which clock. Exit status: 0, or 1 where it went back."""
    is_named = selection != type(selection)()
    told = cli.host.approving.clock_check(selection if is_named else None)
    cli.output.result(told, lambda: [f"It is {_time(told)} by this machine's own clock, which is weaker than several."])


_REVISION: Final = re.compile(r"[0-9]{1,16}")
seen = click.option("--expected-revision", "expected", required=True, metavar="N", help="The revision you have seen.")


@approvals.command("key-status")
@pass_cli
def key_status(cli: Cli) -> None:
    """Show the keys that sign approvals. Exit status: 0."""
    _tell_keys(cli, cli.host.approval_keys.status())


@approvals.command("key-init")
@click.option("--expected-revision", "expected", metavar="N", help="The revision you have seen, if there were keys.")
@pass_cli
def key_init(cli: Cli, expected: str | None) -> None:
    """Make the key that signs approvals; its private half goes to where credentials are kept.

    Exit status: 0, 1 where it cannot be made or kept.
    """
    _key(cli, lambda: cli.host.approval_keys.init(expected), expected)


@approvals.command("key-rotate")
@seen
@click.option("--expected-key", "key", required=True, metavar="KEY", help="The key that is active.")
@pass_cli
def key_rotate(cli: Cli, expected: str, key: str) -> None:
    """Make another key; what the one before has signed counts no more. Exit status: 0, 1 where that failed."""
    _key(cli, lambda: cli.host.approval_keys.rotate(expected, key), expected)


@approvals.command("key-recover")
@seen
@click.option("--candidate", "key", required=True, metavar="KEY", help="The key whose creation was cut off.")
@pass_cli
def key_recover(cli: Cli, expected: str, key: str) -> None:
    """Finish the creation of a key that was cut off. Exit status: 0, 1 where that failed."""
    _key(cli, lambda: cli.host.approval_keys.recover(expected, key), expected)


@approvals.command("key-revoke")
@seen
@click.option("--expected-key", "key", required=True, metavar="KEY", help="The key that is active.")
@pass_cli
def key_revoke(cli: Cli, expected: str, key: str) -> None:
    """End the active key: nothing can be approved before there is another. Exit status: 0, 1 where that failed."""
    _key(cli, lambda: cli.host.approval_keys.revoke(expected, key), expected)


@approvals.command("key-retire")
@seen
@click.option("--key", required=True, metavar="KEY", help="A key that is not current.")
@pass_cli
def key_retire(cli: Cli, expected: str, key: str) -> None:
    """Erase the private half of a key that is not current. Exit status: 0, 1 where that failed."""
    _key(cli, lambda: cli.host.approval_keys.retire(expected, key), expected)


def described(cli: Cli, preparation: Mapping[str, Any]) -> list[str]:
    """Lay out what a write would do, with the exact request."""
    shown = dict(preparation["presentation"])
    request, given = shown.pop("request", None), shown.pop("input", None)
    lines = pairs({name.replace("_", " "): value for name, value in shown.items()})
    if request is None:
        lines += ["what the connector's code is given:", *cli.output.indented(given)]
    else:
        lines.append(f"request: {plain(request['method'])} {plain(request['url'])}")
        lines += cli.output.indented(request["body"]) if "body" in request else []
        lines += [f"only if {plain(name)} is: {plain(value)}" for name, value in request.get("compared", {}).items()]
    return [*lines, f"subject: {preparation['subject_sha256']}"]


def _time(told: Mapping[str, Any]) -> str:
    from headwater import clock

    return clock.from_micros(told["observation"]["upper_unix_ms"] * 1000)


def _names(aimed: Aimed) -> dict[str, Any]:
    from headwater.connect.looking import selectors as names

    return names(aimed.target)


def _policy(told: Mapping[str, Any]) -> list[str]:
    if "policy" not in told:
        return ["No write of this instance may be approved: no policy was published."]
    policy = told["policy"]
    named = [f"  {plain(name)}" for name in policy["operations"]]
    stale = [] if told["current"] else ["The instance has changed since: publish the policy again."]
    return [*pairs({"revision": policy["revision"]}), "writes that may be approved:", *(named or ["  none"]), *stale]


def _key(cli: Cli, work: Callable[[], Coroutine[Any, Any, dict[str, Any]]], expected: str | None) -> None:
    import asyncio

    _fitting(expected, "expected_revision", _REVISION)
    _tell_keys(cli, asyncio.run(work()))


def _tell_keys(cli: Cli, told: Mapping[str, Any]) -> None:
    def human() -> list[str]:
        if "issuer" not in told:
            return ["No key signs approvals yet."]
        issuer = told["issuer"]
        columns = {"key_id": "key", "state": "state", "public_key": "public half"}
        return [*pairs({"revision": issuer["revision"]}), *table(issuer["keys"], columns, empty="No key.")]

    cli.output.result(told, human)


def _fitting(text: str | None, field: str, shape: re.Pattern[str]) -> None:
    """Raise `invalid_input` naming an argument that is not of its shape (CLI-705)."""
    if text is not None and not shape.fullmatch(text):
        raise refuse("invalid_input", "An argument is not of its form.", safe="Nothing was sent.", field=field)
