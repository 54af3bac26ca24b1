"""Giving an instance its endpoint: one place is added to, every other byte stays, and nothing is written in vain."""

import tomllib

import pytest
from configuration.documents import document, entry, write
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.configuration import editing
from headwater.configuration.editing import give_endpoint, with_endpoint
from headwater.errors import HeadwaterError

URL = "https://acme.zendesk.com"
HEAD = document()
LINE = f'endpoint = "{URL}"'
ROW = f"support = {{{LINE}}}"
BLOCK = f"\n[connectors.zendesk.instances.support]\n{LINE}\n"
WHOLE = f"\n[connectors.zendesk]\nenabled = true\n{BLOCK}"
# A text, and what is added at the place of the bar.
TEXTS = {
    "a new file": (f"# mine\n{HEAD}\n[adapters]\n|", WHOLE),
    "no end of line": (f"{HEAD}[adapters]|", f"\n{WHOLE}"),
    "comments at the end": (f"{HEAD}[adapters]\n|\n# the end\n", WHOLE),
    "a connector": (f"{HEAD}[connectors.zendesk]\nenabled  =  true # on\n|", BLOCK),
    "a connector that is only named": (f"{HEAD}[connectors.zendesk.instances.other]\n|[adapters]\n", BLOCK),
    "another connector": (f'{HEAD}[connectors.matrix.instances.me]\nendpoint = "https://m"\n|', WHOLE),
    "an instance": (
        f'{HEAD}[connectors.zendesk.instances.support] # so\nprofile="p"\n|\n# next\n[adapters]\n',
        LINE + "\n",
    ),
    "an instance without members": (f"{HEAD}[connectors.zendesk.instances.support]\n|[adapters]\n", LINE + "\n"),
    "spelled otherwise": (f"{HEAD}[ connectors . 'zendesk' . instances.\"support\" ]\n|", LINE + "\n"),
    "instances in one line": (f"{HEAD}[connectors.zendesk]\ninstances = {{|}} # c\nenabled = true\n", ROW),
    "beside one in one line": (f'{HEAD}[connectors.zendesk]\ninstances = {{ a = {{ profile = "p" }}| }}\n', f", {ROW}"),
    "an instance in one line": (
        f'{HEAD}[connectors.zendesk.instances]\nsupport = {{ profile = "p"   ,description="d"| }} # c\n',
        f", {LINE}",
    ),
    "connectors in one line": (
        f"{HEAD}connectors = {{ zendesk = {{ enabled = true| }} }}\n[adapters]\n",
        f", instances = {{{ROW}}}",
    ),
    "no connector in one line": (
        f"{HEAD}connectors = {{|}}\n[adapters]\n",
        f"zendesk = {{enabled = true, instances = {{{ROW}}}}}",
    ),
    "dotted keys": (
        f'{HEAD}connectors.zendesk.instances.support.profile = "p"\n|[adapters]\n',
        f"connectors.zendesk.instances.support.{LINE}\n",
    ),
    "dotted keys in a table": (
        f'{HEAD}[connectors.zendesk]\ninstances.support.profile = "p"\n|enabled = true\n',
        f"instances.support.{LINE}\n",
    ),
    "what only looks like it": (
        f"{HEAD}[connectors.a.instances.b]\ndescription = '[connectors.zendesk.instances.support]'\n|",
        WHOLE,
    ),
}


def give(path, url=URL, instance="support", seen=None):
    """Give an instance of zendesk an endpoint."""
    return give_endpoint(path, "zendesk", instance, url, admit=[].append if seen is None else seen.append)


def refused(path, *arguments, **more) -> HeadwaterError:
    """Return how an edit is refused; the file stays as it is, and the endpoint is not repeated."""
    before = path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns
    with pytest.raises(HeadwaterError) as caught:
        give(path, *arguments, **more)
    assert (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) == before
    assert [item.name for item in path.parent.iterdir()] == ["config.toml"]
    assert "://" not in f"{caught.value.message}{caught.value.data}"
    return caught.value


@pytest.mark.clause("CLI-230", "CLI-232", "CLI-241")
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "bom"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("text", "more"), TEXTS.values(), ids=TEXTS)
def test_the_endpoint_is_added_in_one_place(text, more, line_end, mark):
    """In the line ends of the file, behind its byte order mark, and in the way that its tables are written."""
    text, more = mark + text.replace("\n", line_end), more.replace("\n", line_end)
    assert with_endpoint(text.replace("|", ""), "zendesk", "support", URL) == text.replace("|", more)


@pytest.mark.clause("CLI-241")
def test_where_lines_end_in_both_ways_the_new_ones_end_in_lf():
    """CRLF is taken up only where every line has it."""
    text = HEAD.replace("\n", "\r\n", 1) + "[connectors.zendesk.instances.support]\r\n"
    assert with_endpoint(text, "zendesk", "support", URL) == f"{text}{LINE}\n"


names = st.sampled_from(["support", "sales", "zendesk", "a-b", "_x"])
spaces = st.sampled_from(["", " ", "  ", "\t"])
fillers = st.sampled_from(["", "\n", "# words {} [x]\n", "\n# words\n\n"])


@st.composite
def written(draw: st.DrawFn) -> str:
    """A configuration as people write it: in tables, in one line, or by dotted keys."""
    text = draw(st.sampled_from(["", "\ufeff"])) + draw(fillers) + HEAD
    rows: dict[str, set[str]] = {}
    for connector in draw(st.lists(names, unique=True, max_size=3)):
        rows[connector] = set(draw(st.lists(names, unique=True, max_size=3)))
    ways = [draw(st.sampled_from(["tables", "line", "dotted", "rows"])) for _ in rows]
    for (connector, instances), way in sorted(zip(rows.items(), ways, strict=True), key=lambda row: row[1] != "dotted"):
        space, filler = draw(spaces), draw(fillers)
        members = [f'{name} ={space}{{{space}profile = "p"{space}}}' for name in sorted(instances)]
        match way:
            case "dotted":
                text += "".join(f'connectors.{connector}.instances.{name}.profile{space}= "p"\n' for name in instances)
            case "line":
                text += f"{filler}[connectors.{connector}]\ninstances = {{{space}{', '.join(members)}{space}}}\n"
            case "rows":
                text += f"[connectors.{connector}.instances]\n{filler}" + "".join(f"{row} # c\n" for row in members)
            case "tables":
                tables = (f"{filler}[connectors.{connector}.instances.{name}]{space}\n" for name in instances)
                text += f"[connectors.{connector}]\n{filler}" + "".join(tables)
    text += draw(fillers)
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@pytest.mark.clause("CLI-241")
@settings(max_examples=300, deadline=None)
@given(written(), names, names)
def test_of_whatever_file_every_other_byte_is_kept(text, connector, instance):
    """The text before is in the text after, in two pieces at most, and nothing else is said than the endpoint."""
    after = with_endpoint(text, connector, instance, URL)
    wanted = tomllib.loads(text.removeprefix("\ufeff"))
    is_new = connector not in wanted.get("connectors", {})
    row = wanted.setdefault("connectors", {}).setdefault(connector, {"enabled": True} if is_new else {})
    row.setdefault("instances", {}).setdefault(instance, {})["endpoint"] = URL
    assert tomllib.loads(after.removeprefix("\ufeff")) == wanted
    places = range(len(text) + 1)
    assert any(after.startswith(text[:place]) and after.endswith(text[place:]) for place in places)
    assert ("\r\n" in text) is ("\r\n" in after)
    assert "\r\n" not in text or after.count("\n") == after.count("\r\n")


@pytest.mark.clause("CLI-229", "CLI-230", "CLI-242")
def test_it_is_written_and_read_back(tmp_path):
    """The instance is shown with its endpoint before it is written; the answer is what the file then says."""
    path = write(tmp_path, document("[adapters]\n"))
    seen: list = []
    found = give(path, seen=seen)
    assert [(row.name, row.endpoint, row.enabled) for row in (*seen, *found.entries)] == [
        ("zendesk/support", URL, True)
    ] * 2
    assert path.read_text() == document("[adapters]\n") + WHOLE
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.clause("CLI-232")
def test_an_endpoint_that_is_there_is_not_written_again(tmp_path):
    """The file is not touched, and nothing is asked."""
    path = write(tmp_path, document(f"[connectors.zendesk.instances.support]\n{LINE}\n"))
    before = path.stat()
    seen: list = []
    assert give(path, seen=seen).entries[0].endpoint == URL
    assert (path.stat().st_ino, path.stat().st_mtime_ns, seen) == (before.st_ino, before.st_mtime_ns, [])


@pytest.mark.clause("CLI-233")
def test_another_endpoint_takes_another_instance(tmp_path):
    """The file says where the instance goes, and is not turned to another host."""
    error = refused(write(tmp_path, document(f"[connectors.zendesk.instances.support]\n{LINE}\n")), "https://b.example")
    assert (error.code, error.exit_status, error.data) == ("lifecycle_conflict", 1, {"field": "endpoint"})
    assert (error.stage, error.next_action) == ("configuration", "check_configuration")


@pytest.mark.clause("CLI-234")
def test_where_a_connection_would_be_stranded_nothing_is_written(tmp_path):
    """Whoever knows the connections says so before."""
    path = write(tmp_path, HEAD)

    def stranded(_entry):
        raise HeadwaterError("lifecycle_conflict", field="endpoint")

    with pytest.raises(HeadwaterError):
        give_endpoint(path, "zendesk", "support", URL, admit=stranded)
    assert path.read_text() == HEAD


@pytest.mark.clause("CLI-235", "CLI-237")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "acme.zendesk.com",
        "http://acme.zendesk.com",
        "http://localhost.acme.com",
        "http://127.0.0.1.acme.com",
        "ftp://acme.zendesk.com",
        "https://",
        "https:///x",
        "https://u:p@acme.zendesk.com",
        "https://u@acme.zendesk.com",
        "https://acme.zendesk.com?",
        "https://acme.zendesk.com/?q=1",
        "https://acme.zendesk.com#f",
        "https://acme.zendesk.com:port",
        "https://acme.zendesk.com\\@evil.example",
        "https://[acme",
        "https://acme .com",
        "https://acme.com\n",
        "https://acme.com\u00a0",
        "https://acme.com/\x7f",
        f"https://{'a' * 2041}",
    ],
)
def test_an_endpoint_that_cannot_be_used_is_not_written(tmp_path, url):
    """Not https, or holding what is no address of a service."""
    error = refused(write(tmp_path, HEAD), url)
    assert (error.code, error.stage, error.exit_status) == ("invalid_input", "arguments", 2)
    assert error.data == {"field": "endpoint"}


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8008", "http://localhost/x", "http://[::1]:1", "https://a.b:8443/api/"]
)
def test_this_machine_itself_is_reached_without_tls(tmp_path, url):
    """Nobody else is on the way."""
    assert give(write(tmp_path, HEAD), url).entries[0].endpoint == url


@pytest.mark.clause("CLI-231")
@pytest.mark.parametrize("more", ["", "[connectors.zendesk.instances.support]\n"])
def test_a_disabled_connector_stays_as_it_is(tmp_path, more):
    """Whether the instance is listed or not."""
    error = refused(write(tmp_path, document(f"[connectors.zendesk]\nenabled = false\n{more}")))
    assert (error.code, error.data) == ("invalid_configuration", {})


@pytest.mark.clause("CLI-240")
@pytest.mark.parametrize("format_", [1, 2, 3, 4])
def test_an_older_format_is_not_written(tmp_path, format_):
    """It is named."""
    error = refused(write(tmp_path, document(format_=format_)))
    assert (error.code, error.exit_status) == ("invalid_configuration", 2)
    assert error.data == {"configuration_format": f"connectors-local/{format_}"}


@pytest.mark.clause("CLI-238")
def test_an_instance_with_pins_keeps_the_endpoint_of_its_program(tmp_path):
    """It is no setting of the instance."""
    pins = entry().replace("[adapters.forge]", "[connectors.zendesk.instances.support]")
    assert refused(write(tmp_path, document(pins))).data == {"field": "endpoint"}


@pytest.mark.clause("CLI-242", "CLI-901")
@pytest.mark.parametrize(
    "text",
    [
        document('[connectors.other.instances.o]\nalias = "zendesk.support"\n'),
        document("".join(f"[connectors.o.instances.o{number}]\n" for number in range(64))),
        document("#" * (2**20 - len(document()))),
        document("[[connectors]]\n"),
    ],
)
def test_a_text_that_could_not_be_read_is_not_written(tmp_path, text):
    """Its alias taken, one instance too many, a byte too large: the old one stays."""
    assert refused(write(tmp_path, text)).code == "invalid_configuration"


@pytest.mark.clause("CLI-243")
def test_an_edit_of_somebody_elses_meanwhile_stays(tmp_path):
    """Between reading and writing."""
    path = write(tmp_path, HEAD)
    with pytest.raises(HeadwaterError) as caught:
        give_endpoint(
            path, "zendesk", "support", URL, admit=lambda _entry: write(tmp_path, f"{HEAD}# theirs\n") and None
        )
    assert caught.value.code == "revision_conflict"
    assert path.read_text() == f"{HEAD}# theirs\n"


@pytest.mark.clause("CLI-244")
def test_what_is_not_there_after_the_write_is_taken_back(tmp_path, monkeypatch):
    """The disk kept something else: the original text is brought back, and that is told."""
    path = write(tmp_path, HEAD)
    replace = editing.replace_owned

    def lies(path, before, after):
        replace(path, before, after.replace(b"acme", b"evil"))
        monkeypatch.setattr(editing, "replace_owned", replace)

    monkeypatch.setattr(editing, "replace_owned", lies)
    with pytest.raises(HeadwaterError) as caught:
        give(path)
    assert caught.value.code == "invalid_configuration"
    assert path.read_text() == HEAD


@pytest.mark.clause("CLI-245", "CLI-057")
def test_what_a_read_refuses_is_not_written(tmp_path):
    """A file that others read, a link, or none."""
    assert refused(write(tmp_path, HEAD, 0o640)).data == {"configuration_rule": "config_not_private"}
    (tmp_path / "config.toml").rename(tmp_path / "real.toml")
    (tmp_path / "config.toml").symlink_to(tmp_path / "real.toml")
    with pytest.raises(HeadwaterError) as caught:
        give(tmp_path / "config.toml")
    assert caught.value.data == {"configuration_rule": "config_not_private"}
    assert (tmp_path / "real.toml").read_text() == HEAD
    with pytest.raises(HeadwaterError) as caught:
        give(tmp_path / "none.toml")
    assert caught.value.data == {"configuration_rule": "config_missing"}
    assert not (tmp_path / "none.toml").exists()
