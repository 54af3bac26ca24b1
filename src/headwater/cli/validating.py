"""`headwater connectors validate`, and a declaration as it is shown."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headwater import limits
from headwater.cli.output import clip, pairs, table
from headwater.cli.session import Cli, pass_cli
from headwater.errors import refuse

if TYPE_CHECKING:
    from headwater.manifest.declaration import Declaration, Stream
    from headwater.manifest.faults import Fault


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@pass_cli
def validate(cli: Cli, file: Path) -> None:
    """Read a connector manifest or a source declaration, and say every reason to refuse it. Nothing is started.

    Exit status: 0 it is valid, 2 it is not, or the file cannot be read.
    """
    from headwater.manifest.advice import advise
    from headwater.manifest.reading import examine

    declaration, faults = examine(_bytes(file))
    if declaration is None:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        explanation = [f"{fault.pointer or '/'}: {fault.message}" for fault in faults]
        message = f"The document is refused: {count}."
        raise refuse("invalid_manifest", message, faults=_listed(faults), explanation=explanation)
    advice = list(advise(declaration))
    result = {**declared(declaration), "advice": _listed(advice)}
    cli.output.result(result, lambda: [*_described(result), *_advised(advice)])


def declared(declaration: "Declaration") -> dict[str, Any]:
    """Return what a declaration says, for a program."""
    return {
        "shape": declaration.shape.value,
        "connector_id": declaration.connector_id,
        "source_kind": declaration.source_kind,
        "version": declaration.version,
        "display_name": declaration.display_name,
        "publisher": declaration.publisher,
        "bindings": sorted(declaration.bindings),
        "human_interaction": sorted(declaration.human_interaction),
        "presets": [
            {"id": preset.id, "label": preset.label, "streams": [entry.stream for entry in preset.streams]}
            for preset in declaration.presets
        ],
        "streams": [_stream(stream) for stream in declaration.streams.values()],
    }


def streams_table(rows: list[dict[str, Any]]) -> list[str]:
    """Lay out the streams of a declaration for a person."""
    columns = {"stream": "stream", "semantics": "kind", "searched": "search in", "shown": "what it is"}
    if not any(row["searchable"] for row in rows):
        del columns["searched"]
    texts = [
        {**row, "searched": clip(", ".join(row["searchable"]), 30), "shown": clip(row["description"], 80)}
        for row in rows
    ]
    return table(texts, columns, empty="")


def _stream(stream: "Stream") -> dict[str, Any]:
    return {
        "stream": stream.name,
        "title": stream.title,
        "semantics": stream.semantics,
        "primary_key": list(stream.primary_key),
        "cursor_field": stream.cursor_field,
        "consent_time_field": stream.consent_time_field,
        "covered_by": list(stream.parents),
        "fields": sorted(stream.fields),
        "selectable": {"fields": stream.fields_selectable, "resources": stream.resources_selectable},
        "views": [{"id": view.id, "label": view.label, "fields": list(view.fields)} for view in stream.views],
        "relationships": [vars(related) for related in stream.relationships],
        "range_filters": dict(stream.range_filters),
        "searchable": list(stream.searchable),
        "description": stream.description,
    }


def _described(result: dict[str, Any]) -> list[str]:
    facts = {name: result[name] for name in ("shape", "connector_id", "version", "display_name", "publisher")}
    facts["bindings"] = ", ".join(result["bindings"]) or None
    facts["presets"] = ", ".join(preset["id"] for preset in result["presets"]) or None
    return ["It is valid.", "", *pairs(facts), "", *streams_table(result["streams"])]


def _advised(advice: list["Fault"]) -> list[str]:
    return ["", *(f"Advice: {fault.pointer}: {fault.message}" for fault in advice)] if advice else []


def _listed(faults: list["Fault"]) -> list[dict[str, str]]:
    return [{"pointer": fault.pointer, "rule": fault.rule, "message": fault.message} for fault in faults]


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(limits.MANIFEST_BYTES + 1)
    except OSError as error:
        raise refuse("invalid_input", "The file that was named cannot be read.") from error
