"""The checkpoint graph: each rule alone, then all of them against random graphs."""

import json
from graphlib import CycleError, TopologicalSorter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.manifest.graph import CheckpointGraph, Edges, graph_faults
from headwater.manifest.reading import examine, read

WINDOW, DETAIL = "checkpoint_window", "parent_detail_accounting"
Row = dict[str, Any]


def child(name: str, parent: str, **members: Any) -> Row:
    """Return a stream that rides one parent's checkpoint."""
    return {"name": name, "state_stream": parent, "coverage_strategy": WINDOW, **members}


def detail(name: str, *parents: str, **members: Any) -> Row:
    """Return a stream whose details are accounted for by parent."""
    return {"name": name, "parent_streams": list(parents), "coverage_strategy": DETAIL, **members}


def flat(*names: str) -> list[Row]:
    """Return streams that cover themselves."""
    return [{"name": name} for name in names]


def document(*rows: Row, connector_id: str = "example") -> bytes:
    """Write a manifest of these streams."""
    return json.dumps({"connector_id": connector_id, "streams": rows}).encode()


def broken(*rows: Row) -> set[tuple[str, str]]:
    """Return the stream and rule of each fault of a manifest."""
    _, faults = examine(document(*rows))
    return {(rows[int(fault.pointer.split("/")[2])]["name"], fault.rule) for fault in faults}


# The rules, one by one


@pytest.mark.clause("CP-016")
@pytest.mark.parametrize("value", [["threads"], 7, None, "", {}, True])
def test_state_stream_is_one_name(value: Any) -> None:
    """A list, a number, null and an empty text are no name."""
    rows = [*flat("threads"), child("stamps", "threads", state_stream=value)]
    _, faults = examine(document(*rows))
    assert [fault.pointer for fault in faults] == ["/streams/1/state_stream"]
    assert broken(*flat("threads"), child("stamps", "threads")) == set()


@pytest.mark.clause("CP-017")
@pytest.mark.parametrize("value", ["albums", [1], ["albums", None], [""], None, {}])
def test_parent_streams_is_an_array_of_names(value: Any) -> None:
    """A bare text, and an entry that is no name, are refused; one entry is enough."""
    rows = [*flat("albums"), detail("photos", parent_streams=value)]
    _, faults = examine(document(*rows))
    assert [fault.pointer for fault in faults] == ["/streams/1/parent_streams"]
    assert broken(*flat("albums"), detail("photos", "albums")) == set()


@pytest.mark.clause("CP-020")
def test_a_stream_is_not_its_own_state_stream() -> None:
    """To name oneself is a breach of its own, not a way to say self-mapped."""
    assert ("stamps", "self_reference") in broken(child("stamps", "stamps"))


@pytest.mark.clause("CP-021")
@pytest.mark.parametrize("parents", [["photos"], ["albums", "photos"]])
def test_a_stream_is_not_among_its_own_parents(parents: list[str]) -> None:
    """Another good parent does not make up for it."""
    assert ("photos", "self_reference") in broken(*flat("albums"), detail("photos", *parents))


@pytest.mark.clause("CP-022")
def test_a_state_stream_that_nobody_declares_is_refused() -> None:
    """A ghost is refused until it is declared."""
    assert broken(child("stamps", "ghost")) == {("stamps", "unknown_stream")}
    assert broken(child("stamps", "ghost"), *flat("ghost")) == set()


@pytest.mark.clause("CP-023")
def test_one_unknown_parent_among_several_is_enough() -> None:
    """The parent that exists does not save the one that does not."""
    assert broken(*flat("inbox"), detail("bodies", "inbox", "ghost")) == {("bodies", "unknown_stream")}


@pytest.mark.clause("CP-024")
def test_a_repeated_parent_is_refused() -> None:
    """It is not silently taken for one."""
    assert broken(*flat("inbox"), detail("bodies", "inbox", "inbox")) == {("bodies", "duplicate_parent")}


@pytest.mark.clause("CP-025", "CP-026")
@pytest.mark.parametrize("strategy", [WINDOW, DETAIL, "snapshot_digest", None])
def test_both_members_on_one_stream_are_refused(strategy: str | None) -> None:
    """The breach is found by its own rule, whatever the strategy says."""
    row = {**child("bodies", "inbox"), "parent_streams": ["archive"], "coverage_strategy": strategy}
    if strategy is None:
        del row["coverage_strategy"]
    assert ("bodies", "both_fields") in broken(*flat("inbox", "archive"), row)


@pytest.mark.clause("CP-026")
def test_both_members_are_refused_when_no_other_rule_fires() -> None:
    """With a strategy that suits neither rule's complaint, this rule still stands alone."""
    edge = Edges("bodies", state_stream="inbox", strategy=WINDOW, both=True)
    assert [rule for _, rule, _ in graph_faults([Edges("inbox"), edge])] == ["both_fields"]


@pytest.mark.clause("CP-027")
def test_an_empty_list_of_parents_is_refused() -> None:
    """Leave the member out to say self-mapped."""
    assert broken(detail("photos")) == {("photos", "empty_parents")}
    rest = {"name": "photos", "coverage_strategy": DETAIL}
    assert read(document(rest)).streams["photos"].parents == ("photos",)


@pytest.mark.clause("CP-034", "CP-036")
@pytest.mark.parametrize("make", [child, detail])
@pytest.mark.parametrize("strategy", [None, WINDOW, DETAIL, "snapshot_digest", "", 3, ["checkpoint_window"], {}])
def test_each_member_needs_its_own_strategy(make: Any, strategy: Any) -> None:
    """state_stream goes with checkpoint_window, parent_streams with parent_detail_accounting, and nothing else."""
    fits = WINDOW if make is child else DETAIL
    found = broken(*flat("albums"), make("photos", "albums", coverage_strategy=strategy))
    assert found == (set() if strategy == fits else {("photos", "strategy")})


@pytest.mark.clause("CP-034", "CP-036")
@pytest.mark.parametrize("make", [child, detail])
def test_an_absent_strategy_is_refused(make: Any) -> None:
    """No strategy is not the right one."""
    row = make("photos", "albums")
    del row["coverage_strategy"]
    assert broken(*flat("albums"), row) == {("photos", "strategy")}


@pytest.mark.clause("CP-014", "CP-018")
@pytest.mark.parametrize("strategy", ["snapshot_digest", WINDOW, DETAIL, None, 3])
def test_a_strategy_alone_changes_nothing(strategy: Any) -> None:
    """A stream without a dependency covers itself, whatever strategy it names."""
    streams = read(document({"name": "alpha", "coverage_strategy": strategy})).streams
    assert CheckpointGraph(streams).parents("alpha") == ("alpha",)


# Loops and depth


@pytest.mark.clause("CP-028", "CP-029")
@pytest.mark.parametrize("length", [2, 3, 5, 40])
def test_a_loop_of_state_streams_is_refused(length: int) -> None:
    """Every stream of the loop is named, and the strategies are all right."""
    names = [f"s{number}" for number in range(length)]
    rows = [child(name, names[(number + 1) % length]) for number, name in enumerate(names)]
    assert broken(*rows) == {(name, "cycle") for name in names}


@pytest.mark.clause("CP-030")
def test_a_loop_of_both_kinds_of_edges_is_refused() -> None:
    """The two members make one graph."""
    assert broken(child("a", "b"), detail("b", "a")) == {("a", "cycle"), ("b", "cycle")}


@pytest.mark.clause("CP-031")
@pytest.mark.parametrize("parents", [("x", "b"), ("b", "x")])
def test_a_loop_through_one_of_several_parents_is_refused(parents: tuple[str, str]) -> None:
    """It is found whichever place the looping parent has in the list."""
    assert broken(*flat("x"), detail("a", *parents), detail("b", "a")) == {("a", "cycle"), ("b", "cycle")}


@pytest.mark.clause("CP-030", "CP-031")
def test_a_stream_that_only_leads_into_a_loop_is_not_blamed_for_it() -> None:
    """The fault stands at the streams of the loop, which are those to mend."""
    rows = [child("a", "b"), child("b", "a"), child("x", "a"), detail("y", "b")]
    assert broken(*rows) == {("a", "cycle"), ("b", "cycle")}


@pytest.mark.clause("CP-032")
def test_a_shared_parent_is_no_loop() -> None:
    """Siblings of either kind are accepted."""
    assert broken(*flat("albums"), detail("photos", "albums"), detail("faces", "albums")) == set()
    assert broken(*flat("inbox"), child("stamps", "inbox"), child("labels", "inbox")) == set()
    assert broken(*flat("a", "b"), detail("x", "a", "b"), detail("y", "b", "a"), child("z", "a")) == set()


@pytest.mark.clause("CP-033")
def test_every_declared_stream_is_validated() -> None:
    """A loop among streams that a run would not touch refuses the whole manifest."""
    declaration, _ = examine(document(*flat("alpha"), child("x", "y"), child("y", "x")))
    assert declaration is None


@pytest.mark.clause("CP-041")
def test_edges_deeper_than_one_level_are_refused() -> None:
    """The house resolves direct parents only: a chain is refused at its lower end."""
    assert broken(*flat("a"), child("b", "a"), child("c", "b")) == {("c", "depth")}
    assert broken(*flat("a", "x"), detail("b", "a"), detail("c", "x", "b")) == {("c", "depth")}
    assert broken(*flat("a"), child("b", "a"), child("c", "b"), child("d", "c")) == {("c", "depth"), ("d", "depth")}


# Random graphs


@st.composite
def graphs(draw: st.DrawFn) -> list[Row]:
    """Draw up to six streams with any edges between them, and to nowhere, mostly with the right strategy."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 6)))]
    target = st.sampled_from([*names, *names, *names, "ghost"])
    rows = []
    for name in names:
        row: Row = {"name": name}
        match draw(st.sampled_from(["flat", "flat", "flat", "child", "detail", "both"])):
            case "child":
                row = child(name, draw(target))
            case "detail":
                row = detail(name, *draw(st.lists(target, max_size=3)))
            case "both":
                row = {**child(name, draw(target)), "parent_streams": draw(st.lists(target, max_size=2))}
        if draw(st.integers(0, 9)) == 0:
            row["coverage_strategy"] = draw(st.sampled_from([WINDOW, DETAIL, "snapshot_digest", None]))
        rows.append(row)
    return rows


def targets_of(row: Row) -> list[str]:
    """Return every stream that a row names."""
    return [*([row["state_stream"]] if "state_stream" in row else []), *row.get("parent_streams", [])]


def keeps_the_rules(rows: list[Row]) -> bool:
    """Judge a graph by the text of the rules alone, sharing nothing with the code."""
    named = {row["name"] for row in rows}
    targets = {row["name"]: targets_of(row) for row in rows}
    for row in rows:
        own, strategy = targets[row["name"]], row.get("coverage_strategy")
        has_child, has_detail = "state_stream" in row, "parent_streams" in row
        if row["name"] in own or not named.issuperset(own) or len(set(own)) < len(own):
            return False
        if (has_child and has_detail) or (has_detail and not row["parent_streams"]):
            return False
        if (has_child and strategy != WINDOW) or (has_detail and strategy != DETAIL):
            return False
    return not any(targets[target] for own in targets.values() for target in own)


@pytest.mark.clause("CP-040", "CP-041")
@given(graphs())
@example([*flat("a", "b"), child("c", "a"), detail("d", "a", "b")])
@example([child("a", "b"), child("b", "a")])
def test_a_graph_is_accepted_just_when_it_keeps_the_rules(rows: list[Row]) -> None:
    """What is accepted sorts topologically, and each of its paths ends at a self-mapped stream."""
    declaration, _ = examine(document(*rows))
    assert (declaration is not None) == keeps_the_rules(rows)
    if declaration is None:
        return
    edges = {row["name"]: set(targets_of(row)) for row in rows}
    order = list(TopologicalSorter(edges).static_order())
    assert sorted(order) == sorted(edges)
    graph = CheckpointGraph(declaration.streams)
    for name, stream in declaration.streams.items():
        assert set(stream.parents) == (edges[name] or {name})
        assert all(graph.parents(parent) == (parent,) for parent in stream.parents)
        assert all(name in graph.covered_by(parent) for parent in stream.parents)
        assert set(stream.parents) <= graph.checkpoint_streams
    assert graph.checkpoint_streams == {name for name, targets in edges.items() if not targets}
    assert graph.detail_parents == {parent for row in rows for parent in row.get("parent_streams", ())}


@pytest.mark.clause("CP-040")
@given(graphs())
def test_a_stream_is_called_looping_just_when_it_is_on_a_loop(rows: list[Row]) -> None:
    """An independent sorter finds a loop in just those graphs in which the cycle rule fires."""
    named = {row["name"] for row in rows}
    edges = {row["name"]: (named & set(targets_of(row))) - {row["name"]} for row in rows}
    try:
        TopologicalSorter(edges).prepare()
        loops = False
    except CycleError:
        loops = True
    assert any(rule == "cycle" for _, rule in broken(*rows)) == loops


@pytest.mark.clause("CP-043")
@given(graphs(), st.permutations([f"s{number}" for number in range(6)]), st.text(min_size=1, max_size=20))
def test_names_do_not_change_the_verdict(rows: list[Row], shuffled: list[str], connector_id: str) -> None:
    """A consistent renaming of the connector and of every stream keeps each fault where it was."""
    names = {f"s{number}": f"{name}-\u00e9~/" for number, name in enumerate(shuffled)} | {"ghost": "phantom"}
    renamed = json.loads(json.dumps(rows))
    for row in renamed:
        row["name"] = names[row["name"]]
        if "state_stream" in row:
            row["state_stream"] = names[row["state_stream"]]
        if "parent_streams" in row:
            row["parent_streams"] = [names[name] for name in row["parent_streams"]]
    _, before = examine(document(*rows))
    _, after = examine(document(*renamed, connector_id=connector_id))
    assert [(fault.pointer, fault.rule) for fault in before] == [(fault.pointer, fault.rule) for fault in after]
