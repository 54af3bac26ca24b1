"""`records search`, as it is typed: from a manifest that names fields to a hit on the screen."""

import json

import pytest


def declaring(headwater, *fields):
    """Write a manifest that names these fields to be searched, or none."""
    (alpha, beta) = json.loads((headwater.manifest()).read_text())["streams"]
    query = {"query": {"search": {"lexical_fields": list(fields)}}} if fields else {}
    return headwater.manifest(streams=[{**alpha, **query}, beta])


def say(key, text):
    """Write a RECORD."""
    data = {"id": key, "text": text}
    message = {"type": "RECORD", "stream": "alpha", "key": key, "data": data, "emitted_at": "2026-11-30T00:00:00Z"}
    return json.dumps(message)


def collect(headwater, *fields, **texts):
    """Collect these texts by their keys."""
    lines = [say(key, text) for key, text in texts.items()]
    done = json.dumps({"type": "DONE", "status": "succeeded", "records_emitted": len(lines)})
    manifest = str(declaring(headwater, *fields))
    script = "read start; " + "".join(f"echo '{line}';" for line in [*lines, done])
    answer = headwater.type("collect", "--manifest", manifest, "--", "sh", "-c", script)
    assert answer.result["status"] == "succeeded"


def test_what_was_collected_is_found(headwater):
    """To a program with places, to a person with brackets."""
    collect(headwater, "text", k1="The first green apple", k2="Red apples, and more apple", k3="pears")
    page = headwater.type("records", "search", "apple").result
    assert {hit["key"] for hit in page["items"]} == {"k1", "k2"}
    hit = next(hit for hit in page["items"] if hit["key"] == "k1")
    ((start, end),) = hit["marks"]
    assert (hit["snippet"][start:end], hit["matched_fields"], page["complete"]) == ("apple", ["text"], True)
    person = type(headwater)(headwater.place, "human").type("records", "search", "green", "first")
    assert "The [first] [green] apple" in person.stdout
    assert person.stdout.splitlines()[0].split() == ["instance", "stream", "key", "in", "what", "it", "says"]


def test_pages_follow_one_another(headwater):
    """The last line of a page is the option for the next one."""
    collect(headwater, "text", **{f"k{n}": "apple" for n in range(5)})
    person = type(headwater)(headwater.place, "human")
    first = person.type("records", "search", "apple", "--limit", "3").stdout
    cursor = first.splitlines()[-1].rpartition(" ")[2]
    rest = headwater.type("records", "search", "apple", "--limit", "3", "--cursor", cursor).result
    assert len(rest["items"]) == 2
    assert "next_cursor" not in rest


def test_fields_that_are_named_later_are_searched_from_the_next_run_on(headwater):
    """What an older manifest did not name is indexed then; before, a person is told why nothing is found."""
    collect(headwater, k1="apple")
    person = type(headwater)(headwater.place, "human")
    assert "no manifest names fields" in person.type("records", "search", "apple").stdout
    collect(headwater, "text")
    assert [hit["key"] for hit in headwater.type("records", "search", "apple").result["items"]] == ["k1"]
    assert "Nothing was found." in person.type("records", "search", "quince").stdout


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (['"'], 2),
        (["*"], 2),
        ([""], 2),
        ([], 2),
        (["apple", "--cursor", "x"], 2),
        (["apple", "--limit", "0"], 2),
        (["apple", "--stream", "ghosts"], 1),
        (["apple", "--instance", "guest/ghost"], 1),
        (["AND", "OR", "NEAR(", "^x", "a:b", "-", "apple"], 0),
    ],
)
def test_a_query_that_does_not_fit_is_refused_plainly(headwater, words, status):
    """With the statuses of every command, and never a word of SQLite's."""
    collect(headwater, "text", k1="apple")
    answer = headwater.type("records", "search", "--", *words) if words[:1] == ["AND"] else None
    answer = answer or headwater.type("records", "search", *words)
    assert answer.status == status
    for word in ("Traceback", "fts5", "SQL"):
        assert word not in answer.stderr + answer.stdout


def test_data_does_not_drive_the_terminal(headwater):
    """A snippet is shown without its control characters."""
    collect(headwater, "text", k1="apple \\u001b[2J pie")
    person = type(headwater)(headwater.place, "human")
    assert "\x1b" not in person.type("records", "search", "apple").stdout
