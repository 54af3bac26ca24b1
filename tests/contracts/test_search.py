"""The full-text index of a store: it holds what the live records say, whatever happens to them, and finds it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater import limits
from headwater.collect.checkpoints import Decision
from headwater.collect.effects import Keep
from headwater.collect.plan import RunPlan, plan_scope
from headwater.collect.ports import Conclusion
from headwater.collect.session import Facts
from headwater.collect.verdict import Verdict
from headwater.errors import HeadwaterError, UsageError
from headwater.manifest.declaration import Declaration, Stream
from headwater.store.blobs import BlobFolder
from headwater.store.sqlite.database import open_database
from headwater.store.sqlite.ledger import InstanceName, SqliteLedger
from headwater.store.sqlite.reading import Reader
from headwater.store.sqlite.schema import migrations
from headwater.store.sqlite.search_index import SearchIndex
from headwater.store.sqlite.searching import TOKENIZER, expression
from headwater.store.sqlite.undo import undo

AT = "2026-11-30T00:00:00Z"
ENDED = Conclusion(Verdict("succeeded", "succeeded", "", True), Decision(()), Facts())
Data = dict[str, Any] | str | None


class Store:
    """A database, and runs over it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "h.db"
        self.blobs = BlobFolder(folder / "blobs", folder / "spool")
        self.runs = 0

    def run(
        self,
        *batches: Sequence[tuple[str, Data]],
        fields: Sequence[str] = ("title", "body"),
        stream: str = "notes",
        name: str = "me",
    ) -> str:
        """Run once over one stream: in each batch records by key (None deletes, text is data as it is)."""
        self.runs += 1
        run_id = f"run_{self.runs}"
        streams = {stream: Stream(stream, primary_key=("id",), searchable=tuple(fields))}
        declaration = Declaration("https://x.example/flat", "1", "Flat", streams)

        instance = InstanceName(declaration.connector_id, "flat", name)
        ledger = SqliteLedger(open_database(self.path), instance, self.blobs)
        try:
            ledger.begin(RunPlan(run_id, declaration, plan_scope(declaration)))
            for batch in batches:
                texts = ((key, json.dumps(data) if isinstance(data, dict) else data) for key, data in batch)
                ledger.write([Keep(stream, key, AT, None, text, None) for key, text in texts])
            ledger.conclude(ENDED)
        finally:
            ledger.close()
        return run_id

    def undo(self, run_id: str) -> None:
        """Undo a run."""
        with closing(open_database(self.path)) as connection:
            undo(connection, self.blobs, run_id)

    def find(self, typed: str, **options: Any) -> dict[str, Any]:
        """Search as a face does."""
        asked = {"instance": None, "stream": None, "limit": 25, "cursor": None, **options}
        with closing(open_database(self.path, readonly=True)) as connection:
            return Reader(connection).search(typed, *asked.values())

    def keys(self, typed: str, **options: Any) -> list[str]:
        """Return the keys of what is found."""
        return [hit["key"] for hit in self.find(typed, **options)["items"]]

    def ask(self, sql: str, *values: Any) -> list[Any]:
        """Ask the database itself."""
        with closing(apsw.Connection(str(self.path))) as connection:
            return connection.execute(sql, values).fetchall()

    def tokens(self) -> list[Any]:
        """Return every token of the index with its record, field and place, having looked into its soundness."""
        with closing(apsw.Connection(str(self.path))) as connection:
            connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, search, instance)")
            return sorted(connection.execute("SELECT doc, term, col, offset FROM words").fetchall())

    def tokens_of_records(self) -> list[Any]:
        """Return the same of an index made from the live records as they are now."""
        with closing(apsw.Connection(":memory:")) as fresh, closing(apsw.Connection(str(self.path))) as stored:
            for _, script in migrations():
                fresh.execute(script)
            fresh.execute("INSERT INTO instances VALUES (1, '', '', '', '')")
            for stream, fields in stored.execute("SELECT stream, fields FROM search_streams").fetchall():
                fresh.execute("INSERT INTO streams (id, instance, name, semantics) VALUES (?1, 1, ?1, '')", (stream,))
                fresh.execute("INSERT INTO search_streams VALUES (?, ?, NULL)", (stream, fields))
            live = stored.execute(
                "SELECT v.seq, v.stream, v.data FROM records AS r JOIN versions AS v ON v.seq = r.version "
                "WHERE v.data IS NOT NULL AND v.stream IN (SELECT stream FROM search_streams) ORDER BY v.seq"
            ).fetchall()
            SearchIndex(fresh, {stream for _, stream, _ in live}).replace([], live)
            fresh.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, search, instance)")
            return sorted(fresh.execute("SELECT doc, term, col, offset FROM words").fetchall())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that holds nothing yet."""
    return Store(tmp_path)


def note(title: Any, body: Any = None) -> dict[str, Any]:
    """Return a record's data."""
    return {"id": "x", "title": title, "body": body, "other": "hidden"}


# What is found


def test_what_was_collected_is_found_at_once(store: Store) -> None:
    """By any declared field, with the field that matches and where; not by another field."""
    store.run([("a", note("Grocery list", "Milk and eggs")), ("b", note("Milk", "prices"))])
    (hit,) = store.find("eggs")["items"]
    assert (hit["instance"], hit["stream"], hit["key"], hit["emitted_at"]) == ("flat/me", "notes", "a", AT)
    assert (hit["matched_fields"], hit["snippet"], hit["marks"]) == (("body",), "Milk and eggs", ((9, 13),))
    assert sorted(store.keys("milk")) == ["a", "b"]
    assert store.keys("hidden") == []
    assert store.find("eggs")["complete"] is True


def test_every_word_has_to_occur_in_the_record_somewhere(store: Store) -> None:
    """In one field or in two."""
    store.run([("a", note("red boat", "green car")), ("b", note("red car")), ("c", note("boat"))])
    assert sorted(store.keys("red car")) == ["a", "b"]
    (hit,) = store.find("boat green")["items"]
    assert hit["matched_fields"] == ("title", "body")


def test_a_phrase_has_its_words_in_order_and_lies_in_one_field(store: Store) -> None:
    """It does not run from one field into the next."""
    store.run([("a", note("the red boat")), ("b", note("boat red the")), ("c", note("the red", "boat"))])
    assert store.keys('"red boat"') == ["a"]
    assert sorted(store.keys("red boat")) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Crème brûlée", "creme BRULEE"),
        ("ΑΘΗΝΑ", "αθηνα"),
        ("Привет, Мир!", "привет мир"),
        ("東京タワー", "東京*"),
        ("it's e-mail", "it's e-mail"),
        ("it's e-mail", "mail"),
        ("C++ and C#", "c++"),
        ("a AND b OR c NOT d NEAR e", "and or not near"),
        ("title value", "title:value"),
        ("tail*", "tail*"),
        ("tailor", "tail*"),
        ("two words here", '"two wor"*'),
        ("caf\u00e9 nai\u0308ve", "cafe naive"),
        ("(brackets) [and] {more} ^x", "(brackets) {more} ^x"),
        ("emoji 👍 thumbs", "emoji 👍 thumbs"),
    ],
)
def test_plain_words_just_work(store: Store, text: str, typed: str) -> None:
    """Whatever a person types is words: case, accents and signs do not matter, and no sign means something."""
    store.run([("a", note(text)), ("b", note("nothing of it"))])
    assert store.keys(typed) == ["a"]


@pytest.mark.parametrize("typed", ["", " ", "*", '""', "- + ( )", '"*"', "\x00", "…"])
def test_a_query_without_a_word_is_refused(store: Store, typed: str) -> None:
    """It would find nothing, or everything."""
    store.run([("a", note("x"))])
    with pytest.raises(HeadwaterError, match="no word") as refused:
        store.find(typed)
    assert refused.value.code == "invalid_input"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ('a "b', "no end"),
        ("a" * (limits.SEARCH_QUERY_CHARACTERS + 1), "characters"),
        ("a " * (limits.SEARCH_WORDS + 1), "words"),
    ],
)
def test_a_query_out_of_bounds_is_refused(typed: str, words: str) -> None:
    """With what is wrong with it."""
    with pytest.raises(HeadwaterError, match=words):
        expression(typed)
    assert expression("a " * limits.SEARCH_WORDS)
    assert expression("a" * limits.SEARCH_QUERY_CHARACTERS)


@given(st.text(max_size=40))
def test_no_query_is_malformed(typed: str) -> None:
    """Every text is refused for one of the reasons above, or is an expression that FTS5 takes."""
    try:
        match = expression(typed)
    except UsageError:
        return
    with closing(apsw.Connection(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE one USING fts5 (a, b)")
        assert memory.execute("SELECT * FROM one WHERE one MATCH ?", (match,)).fetchall() == []


def test_the_best_come_first_page_by_page(store: Store) -> None:
    """Each match once, by rank and then the newest; a cursor belongs to its query."""
    short = [(f"s{n}", note("boat")) for n in range(7)]
    long = [(f"l{n}", note("boat and much else about other things that float")) for n in range(5)]
    store.run([*long, *short])
    seen: list[str] = []
    cursor = None
    while True:
        page = store.find("boat", limit=5, cursor=cursor)
        seen += [hit["key"] for hit in page["items"]]
        if (cursor := page.get("next_cursor")) is None:
            break
    assert seen == [f"s{n}" for n in reversed(range(7))] + [f"l{n}" for n in reversed(range(5))]
    first = store.find("boat", limit=5)["next_cursor"]
    for typed, cursor in (("float", first), ("boat", "x"), ("boat", "WzEsMl0"), ("boat", "é")):
        with pytest.raises(HeadwaterError, match="cursor"):
            store.find(typed, cursor=cursor)


def test_a_search_stays_in_its_instance_and_stream(store: Store) -> None:
    """Names that are not there are refused; those that declare nothing find nothing, and say so."""
    store.run([("a", note("boat"))])
    store.run([("b", note("boat"))], name="you")
    store.run([("c", note("boat"))], stream="letters")
    store.run([("d", note("boat"))], stream="mute", fields=())
    assert sorted(store.keys("boat")) == ["a", "b", "c"]
    assert sorted(store.keys("boat", instance="flat/me")) == ["a", "c"]
    assert sorted(store.keys("boat", stream="notes")) == ["a", "b"]
    assert store.keys("boat", instance="flat/you", stream="notes") == ["b"]
    assert store.find("boat", stream="mute") == {"items": [], "complete": True, "searched": 0}
    for options in ({"instance": "flat/ghost"}, {"stream": "ghosts"}):
        with pytest.raises(HeadwaterError) as refused:
            store.find("boat", **options)
        assert refused.value.code == "not_found"


def test_a_query_that_everything_matches_ranks_the_newest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is told of, and the oldest are left out."""
    monkeypatch.setattr(limits, "SEARCH_MATCHES", 4)
    store.run([(f"k{n}", note("boat")) for n in range(5)])
    page = store.find("boat")
    assert (page["complete"], len(page["items"])) == (False, 5)
    store.run([("k5", note("boat"))])
    page = store.find("boat")
    assert page["complete"] is False
    assert "k0" not in [hit["key"] for hit in page["items"]]


def test_a_search_that_takes_too_long_is_ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to do instead, and the next one works."""
    store.run([(f"k{n}", note("boat")) for n in range(4_000)])
    monkeypatch.setattr(limits, "SEARCH_SECONDS", 0.0)
    with pytest.raises(HeadwaterError, match="rarer words"):
        store.find("boat")
    monkeypatch.undo()
    assert len(store.keys("boat")) == 25


# What records may hold


ODD = {
    "a number": (7, []),
    "a list": (["boat"], []),
    "an object": ({"boat": "boat"}, []),
    "null": (None, []),
    "marks": ("\x02boat\x03 \x00 sails", ["boat"]),
    "half of a pair written out": ("boat \ud83d\udc4d", ["boat"]),
}


@pytest.mark.parametrize(("value", "found"), ODD.values(), ids=ODD)
def test_only_texts_are_searched(store: Store, value: Any, found: list[str]) -> None:
    """A value of another kind is no text, and a text may hold what it wants."""
    store.run([("a", note(value))])
    (hits, marked) = store.find("boat")["items"], [""]
    marked = [hit["snippet"][start:end] for hit in hits for start, end in hit["marks"]]
    assert marked == found


def test_names_are_read_however_they_are_written(store: Store) -> None:
    """An escape in a member's name, a dot, a quote or a dollar in it: it is a name."""
    names = ("title", "a.b", '$"x', "é")
    store.run([("a", '{"t\\u0069tle":"boat","a.b":"car","$\\"x":"bike","\\u00e9":"tram"}')], fields=names)
    assert [store.find(word)["items"][0]["matched_fields"] for word in ("boat", "car", "bike", "tram")] == [
        (name,) for name in names
    ]


def test_a_long_text_is_searched_up_to_its_bound(store: Store) -> None:
    """A megabyte of it, and not the end of a longer one."""
    long = "early " + "x" * limits.SEARCH_CHARACTERS + " late"
    store.run([("a", note(long))])
    assert store.keys("early") == ["a"]
    assert store.keys("late") == []


def test_a_record_of_any_depth_costs_no_batch(store: Store) -> None:
    """It is stored; whether it is searched is another matter."""
    deep = '{"deep":' + "[" * 5_000 + "]" * 5_000 + ',"title":"boat"}'
    store.run([("a", deep), ("b", note("boat"))])
    assert "b" in store.keys("boat")
    assert store.ask("SELECT count(*) FROM records") == [(2,)]
    assert store.tokens() == store.tokens_of_records()


def test_as_many_fields_as_a_manifest_may_name_are_searched(store: Store) -> None:
    """Each has a place of its own."""
    names = [f"f{n}" for n in range(limits.SEARCH_FIELDS)]
    store.run([("a", {name: f"word{name}" for name in names})], fields=names)
    for name in names:
        assert store.find(f"word{name}")["items"][0]["matched_fields"] == (name,)


# The index and the records


def test_a_text_that_changes_or_goes_is_found_no_more(store: Store) -> None:
    """Within a batch, in the next one, and in the next run."""
    store.run([("a", note("one")), ("a", note("two")), ("b", note("one"))], [("a", note("three"))])
    assert [store.keys(word) for word in ("one", "two", "three")] == [["b"], [], ["a"]]
    store.run([("b", None), ("a", note("four"))], [("b", note("five")), ("b", None)])
    assert [store.keys(word) for word in ("one", "three", "four", "five")] == [[], [], ["a"], []]
    store.run([("b", note("six"))])
    assert store.keys("six") == ["b"]
    assert store.tokens() == store.tokens_of_records()


def test_undoing_a_run_undoes_what_is_found(store: Store) -> None:
    """The text of before is found again."""
    store.run([("a", note("one"))])
    second = store.run([("a", note("two")), ("b", note("three"))])
    store.undo(second)
    assert [store.keys(word) for word in ("one", "two", "three")] == [["a"], [], []]
    assert store.tokens() == store.tokens_of_records()


def test_a_batch_that_is_not_kept_is_not_found(store: Store) -> None:
    """The index is in the records' own transaction."""
    store.run([("a", note("one"))])
    with closing(open_database(store.path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        SearchIndex(connection, [1]).replace([1], [(2, 1, '{"title":"two"}')])
        connection.execute("ROLLBACK")
    assert [store.keys(word) for word in ("one", "two")] == [["a"], []]


def steps(patched: pytest.MonkeyPatch) -> list[bool]:
    """Note what each step of building says: whether there was something to do."""
    build, said = SqliteLedger._build_search, []

    def noting(ledger: SqliteLedger) -> bool:
        said.append(build(ledger))
        return said[-1]

    patched.setattr(SqliteLedger, "_build_search", noting)
    return said


def test_a_stream_that_declares_nothing_costs_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row about it, not a token, and nothing is gone through."""
    said = steps(monkeypatch)
    store.run([("a", note("boat"))], fields=())
    store.run([("a", note("car"))], fields=())
    assert said == [False, False]
    assert store.ask("SELECT * FROM search_streams") == []
    assert store.tokens() == []


@pytest.mark.parametrize("held", [1, 3, 10_000])
def test_another_set_of_fields_is_built_at_the_next_run(
    store: Store, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps of any size: fields that come, go or change places; and old versions and deletes stay out."""
    monkeypatch.setattr(limits, "BATCH_EFFECTS", held)
    store.run([(f"k{n}", note(f"title{n}", f"body{n}")) for n in range(8)], fields=())
    store.run([("k0", note("later")), ("k1", None)], fields=())
    for fields in (("title",), ("body", "title"), ("body",), ("other",), (), ("title",)):
        store.run([], fields=fields)
        assert store.tokens() == store.tokens_of_records()
        assert bool(store.keys("title7")) == ("title" in fields)
        assert bool(store.keys("later")) == ("title" in fields)
        assert store.keys("title1") == store.keys("title0") == []
        assert len(store.keys("hidden")) == (7 if "other" in fields else 0)
        assert store.ask("SELECT count(*) FROM search_streams") == [(1 if fields else 0,)]


def test_an_index_that_is_half_built_is_gone_on_with(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that dies between two steps leaves an index that says so, and that the next run completes."""
    monkeypatch.setattr(limits, "BATCH_EFFECTS", 2)
    store.run([(f"k{n}", note("boat")) for n in range(9)], fields=())
    build, left = SqliteLedger._build_search, [1, 1]

    def dying(ledger: SqliteLedger) -> bool:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return build(ledger)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteLedger, "_build_search", dying)
        with pytest.raises(KeyboardInterrupt):
            store.run([])
    page = store.find("boat")
    assert (len(page["items"]), page["complete"]) == (4, False)
    store.run([("k0", note("car"))])
    page = store.find("boat")
    assert (len(page["items"]), page["complete"]) == (8, True)
    assert store.tokens() == store.tokens_of_records()


def test_a_large_record_ends_a_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is bounded in bytes too."""
    store.run([(f"k{n}", note("boat " * 100)) for n in range(5)], fields=())
    monkeypatch.setattr(limits, "BATCH_BYTES", 400)
    said = steps(monkeypatch)
    store.run([])
    assert said == [True] * 6 + [False]
    assert len(store.keys("boat")) == 5
    assert store.tokens() == store.tokens_of_records()


WORDS = st.sampled_from(["boat", "car", "Été", "été", "x y", "", None, 3])
CHANGE = st.tuples(st.sampled_from("abcd"), st.none() | st.builds(note, WORDS, WORDS))
FIELDS = st.sampled_from([(), ("title",), ("title", "body"), ("body",)])
RUNS = st.lists(st.tuples(FIELDS, st.lists(st.lists(CHANGE, max_size=5), max_size=3), st.booleans()), max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=RUNS, step=st.integers(1, 4))
def test_the_index_is_what_building_it_anew_would_make(tmp_path_factory: Any, runs: list[Any], step: int) -> None:
    """After runs with all fields and none, changes, deletes and undoings, in any order."""
    store = Store(tmp_path_factory.mktemp("store"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "BATCH_EFFECTS", step)
        for fields, batches, undone in runs:
            run_id = store.run(*batches, fields=fields)
            if undone:
                store.undo(run_id)
        if runs:
            assert store.tokens() == store.tokens_of_records()


# The migration


def test_the_tokens_of_the_snippets_are_those_of_the_index() -> None:
    """Or a match would be found that no snippet shows."""
    script = "".join(script for _, script in migrations())
    assert f"tokenize = '{TOKENIZER}'" in script


def older(store: Store) -> Iterator[str]:
    """Yield what the plan of each search statement says."""
    with closing(open_database(store.path)) as connection:
        for sql in ("DELETE FROM search WHERE rowid = 5", "SELECT rowid FROM search WHERE search MATCH 'x'"):
            yield from (row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}"))


def test_nothing_is_taken_out_by_a_scan(store: Store) -> None:
    """A row is found by its number, or a store would grow slower with each record."""
    store.run([])
    first, second = older(store)
    assert first.startswith("SCAN search VIRTUAL TABLE INDEX 0:=")
    assert second.startswith("SCAN search VIRTUAL TABLE INDEX 0:M")
