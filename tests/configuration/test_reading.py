"""The configuration is read to the letter: one defect refuses all of it, and nothing of it is repeated."""

from pathlib import Path

import pytest
from configuration.documents import DIGEST, UID, document, entry, write

from headwater.codes import CODES
from headwater.configuration.model import Consumer, Custody, Executable, Permissions
from headwater.configuration.reading import beside, parse, read
from headwater.errors import HeadwaterError

SECRET = "xoxb-SENTINEL"
SUPPORT = '[connectors.zendesk.instances.support]\nendpoint = "https://acme.zendesk.com"\n'


def listed(name: str, count: int) -> str:
    """Return a TOML list of so many names."""
    return str([f"{name}{number}" for number in range(count)])


def refused(text: str) -> HeadwaterError:
    """Return how a text is refused: always with one code, and without a word of what it holds."""
    with pytest.raises(HeadwaterError) as caught:
        parse(text.encode())
    assert caught.value.code == "invalid_configuration"
    assert (caught.value.stage, caught.value.next_action) == ("configuration", "check_configuration")
    assert SECRET not in f"{caught.value.message}{caught.value.data}"
    assert "/" not in str(caught.value.data.get("configuration_rule", ""))
    return caught.value


@pytest.mark.clause("CLI-156", "CLI-181", "CLI-182", "CLI-161", "CLI-162")
def test_an_instance_has_a_name_and_what_is_said_of_it():
    """Alias and id follow from the names where they are not written."""
    text = document(
        SUPPORT + '[connectors.matrix.instances.me]\nalias = "old"\ninstance_id = "m-1"\nprofile = "password"\n'
        'description = "mine"\npermissions = {profiles = ["password"], operations = ["rooms.list"]}\n',
        head='default_instance = "zendesk/support"\n',
    )
    found = parse(text.encode())
    assert (found.format, found.owner_uid, found.default_instance) == ("connectors-local/5", UID, "zendesk/support")
    support, me = found.entries
    assert (support.alias, support.instance_id, support.name) == ("zendesk.support",) * 2 + ("zendesk/support",)
    assert (support.endpoint, support.profile, support.permissions) == ("https://acme.zendesk.com", None, None)
    assert (support.startup, support.restart, support.enabled, support.pins) == ("on-demand", "never", True, None)
    assert (me.alias, me.instance_id, me.profile, me.description) == ("old", "m-1", "password", "mine")
    assert me.permissions == Permissions(("password",), ("rooms.list",))


@pytest.mark.clause("CLI-163", "CLI-173", "CLI-208", "CLI-152")
@pytest.mark.parametrize("format_", [1, 2, 3, 4, 5])
def test_a_legacy_entry_is_read_in_every_format(format_):
    """What it pins comes back; its names are its implementation and its alias; without permissions it may nothing."""
    private = "" if format_ == 1 else '"connectors-private/2"'
    args = f'{{path = "/opt/x", sha256 = "{DIGEST}", args = ["; touch /tmp/x", "--a"]}}'
    body = entry("forge", private_protocol=private, executable=args, startup='"automatic"', restart='"never"')
    (found,) = parse(document(body, format_, 'default_adapter = "forge"\n').encode()).entries
    assert (found.name, found.alias, found.instance_id) == ("fixture-forge/forge", "forge", "forge-local")
    assert (found.startup, found.configuration_revision, found.permissions) == ("automatic", "cfg-1", Permissions())
    assert found.pins.executable.args == ("; touch /tmp/x", "--a")
    assert found.pins.private_protocol == (private.strip('"') or None)


@pytest.mark.clause("CLI-181")
def test_an_instance_may_carry_the_pins_of_a_legacy_entry():
    """A migrated one keeps its identity byte for byte, under new names."""
    pins = entry("forge").replace("[adapters.forge]", "[connectors.zendesk.instances.support]")
    (found,) = parse(document(pins + 'alias = "forge"\n').encode()).entries
    assert (found.name, found.alias, found.instance_id) == ("zendesk/support", "forge", "forge-local")
    assert found.pins.adapter_id == "fixture-forge"


@pytest.mark.clause("CLI-209", "CLI-257")
def test_a_catalog_entry_has_the_names_of_the_connector_that_it_serves():
    """It says which by its arguments; where this build has no such connector it is no instance."""
    named = entry(
        "a", adapter_id='"catalog"', executable=f'{{path="/c", sha256="{DIGEST}", args=["--connector", "git"]}}'
    )
    text = document(named + entry("b", adapter_id='"catalog"')).encode()
    assert [found.connector for found in parse(text, lambda: {"git"}).entries] == ["git", "catalog"]
    assert [found.connector for found in parse(text).entries] == ["catalog", "catalog"]


@pytest.mark.clause("CLI-154", "CLI-183")
def test_consumers_are_read_from_the_third_format_on():
    """A pinned program, the beginnings of variables, and the instances that it may have."""
    body = (
        entry()
        + f"""[consumers.tool]
executable = {{path = "/opt/tool", sha256 = "{DIGEST}", args = ["-x"]}}
pass_env = ["LANG", "LC_"]
permissions = {{connections = ["forge"]}}
"""
    )
    tool = Consumer("tool", Executable(Path("/opt/tool"), DIGEST, ("-x",)), ("LANG", "LC_"), ("forge",))
    assert parse(document(body, 3).encode()).consumers == {"tool": tool}
    assert parse(document("", 3).encode()).consumers == {}
    refused(document(body, 2))
    refused(document("[consumers]\n", 1))


@pytest.mark.clause("CLI-155", "CLI-157", "CLI-158", "CLI-159")
def test_custody_is_named_from_the_fourth_format_on(tmp_path):
    """A directory stands with the mounted one and with no other, and no link is in it."""
    mounted = f'[custody]\nbinding = "mounted_secret"\ndirectory = "{tmp_path}"\n'
    assert parse(document(mounted, 4).encode()).custody == Custody("mounted_secret", tmp_path)
    assert parse(document("", 4).encode()).custody is None
    refused(document(mounted, 3))
    refused(document(mounted, 4, 'secret_service_socket = "/run/user/1/bus"\n'))
    (tmp_path / "link").symlink_to(tmp_path)
    refused(document(f'[custody]\nbinding = "mounted_secret"\ndirectory = "{tmp_path}/link/x"\n'))
    for body in (
        'binding = "mounted_secret"',
        'binding = "mounted_secret"\ndirectory = "secrets"',
        'binding = "secret_service"\ndirectory = "/x"',
        'binding = "keepass"',
        'binding = "windows_credential_manager"',
        "binding = 1",
        'directory = "/x"',
        'binding = "secret_service"\nkey = 1',
    ):
        refused(document(f"[custody]\n{body}\n"))


@pytest.mark.clause("CLI-150", "CLI-171", "CLI-901")
@pytest.mark.parametrize(
    "text",
    [
        document(f'credential = "{SECRET}"\n'),
        document(entry(credential=f'"{SECRET}"')),
        document(f'[connectors.zendesk.instances.support]\ntoken = "{SECRET}"\n'),
        document(f'[connectors.zendesk]\ntoken = "{SECRET}"\n'),
        document(f'[connectors.zendesk.instances.support]\nendpoint = "https://{SECRET} x"\n'),
        document(f'[custody]\nbinding = "secret_service"\nitem = "{SECRET}"\n'),
        document(f'[connectors.zendesk.instances.support]\nacquisition = "{SECRET}"\n'),
        document(f'[consumers.x]\nsecret = "{SECRET}"\n'),
        document(entry(executable=f'{{path = "/x", sha256 = "{DIGEST}", env = "{SECRET}"}}')),
        document(entry(permissions=f'{{grants = ["{SECRET}"]}}')),
        f'format = "{SECRET}',
        f"{SECRET} = [",
    ],
)
def test_a_key_that_is_not_known_refuses_the_file_and_is_not_repeated(text):
    """At every level, whatever it holds."""
    refused(text)


@pytest.mark.clause("CLI-151", "CLI-156", "CLI-168", "CLI-169")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "owner_uid = 0\n",
        document(format_=6),
        document(format_=0),
        "format = 5\nowner_uid = 0\n",
        document(SUPPORT, 4),
        document(entry(), 4, 'default_instance = "fixture-forge/forge"\n'),
        document(SUPPORT, head='default_instance = "support"\n'),
        document(SUPPORT, head='default_instance = "zendesk/none"\n'),
        document(SUPPORT, head='default_adapter = "none"\n'),
        document(SUPPORT, head="default_adapter = 1\n"),
        document(SUPPORT, head='default_adapter = "zendesk.support"\ndefault_instance = "zendesk/support"\n'),
        document(entry("b", adapter_id='"catalog"'), head='default_instance = "catalog/b"\n'),
    ],
)
def test_what_a_format_does_not_have_is_refused(text):
    """So is a default that names nothing, or two things."""
    refused(text)


@pytest.mark.clause("CLI-059")
@pytest.mark.parametrize(("owner", "rule"), [(UID + 1, "owner_uid_mismatch"), (-1, "owner_uid_mismatch")])
def test_another_owner_is_refused_by_its_rule(owner, rule):
    """The file says whose it is."""
    assert refused(document(owner=owner)).data == {"configuration_rule": rule}


@pytest.mark.parametrize("owner", ["true", '"0"', "0.0", ""])
def test_an_owner_that_is_no_number_has_no_rule(owner):
    """Nothing is guessed."""
    assert refused(f'format = "connectors-local/5"\n{f"owner_uid = {owner}" if owner else ""}\n').data == {}


@pytest.mark.clause("CLI-161", "CLI-162", "CLI-164", "CLI-166", "CLI-173", "CLI-053")
@pytest.mark.parametrize(
    "members",
    [
        {"startup": '"always"'},
        {"restart": '"on-failure"'},
        {"protocol": '"v1"'},
        {"private_protocol": '"connectors-private/4"'},
        {"instance_id": '"a/b"'},
        {"instance_id": ""},
        {"adapter_id": '"a b"'},
        {"configuration_revision": f'"{"r" * 129}"'},
        {"credential_revision": '"abc"'},
        {"executable": ""},
        *(
            {"executable": f'{{path = "{path}", sha256 = "{digest}", args = {args}}}'}
            for path, digest, args in (
                ("bin/x", DIGEST, "[]"),
                ("python3", DIGEST, "[]"),
                ("~/x", DIGEST, "[]"),
                ("$HOME/x", DIGEST, "[]"),
                ("https://x/y", DIGEST, "[]"),
                ("/" + "x" * 4096, DIGEST, "[]"),
                ("/x", DIGEST[1:], "[]"),
                ("/x", DIGEST.upper(), "[]"),
                ("/x", DIGEST + "a", "[]"),
                ("/x", DIGEST, "[1]"),
                ("/x", DIGEST, '"-x"'),
                ("/x", DIGEST, '["\\u0000"]'),
                ("/x", DIGEST, f'["{"x" * 4097}"]'),
                ("/x", DIGEST, listed("x", 257)),
            )
        ),
        {"permissions": '{profiles = ["a", "a"]}'},
        {"permissions": '{profiles = ["a b"]}'},
        {"permissions": f"{{profiles = {listed('p', 65)}}}"},
        {"permissions": f"{{operations = {listed('p', 257)}}}"},
        {"permissions": "1"},
    ],
)
def test_a_pin_that_does_not_fit_refuses_the_file(members):
    """A path is absolute and expands nothing, a digest is whole, a word is one of a few."""
    refused(document(entry(**members)))


@pytest.mark.clause("CLI-064", "CLI-167", "CLI-179", "CLI-181")
@pytest.mark.parametrize(
    "text",
    [
        *(entry(alias) for alias in ("setup", "connections", "server", '"a b"', '"a/b"', f'"{"a" * 129}"', '""')),
        *(f'[connectors.z.instances."{name}"]\n' for name in ("a/b", "a b", "", "é", "a" * 129)),
        *(f'[connectors."{name}".instances.a]\n' for name in ("a/b", "", "a" * 129)),
        *(
            f"[connectors.z.instances.a]\n{line}\n"
            for line in (
                'endpoint = ""',
                'endpoint = "https://a b"',
                'endpoint = "https://a\\u007f"',
                'endpoint = "https://a\\u00a0b"',
                f'endpoint = "https://{"a" * 2041}"',
                "endpoint = 1",
                'profile = "a b"',
                'alias = "adapters"',
                'alias = "a/b"',
                'instance_id = ""',
                'description = "a\\nb"',
                'startup = "always"',
                'adapter_id = "x"',
                'permissions = ["a"]',
            )
        ),
        "[connectors.z]\nenabled = 1\n",
        "[connectors]\nz = 1\n",
        "[connectors.z]\ninstances = []\n",
        "[connectors.z.instances]\na = 1\n",
        "[[connectors.z.instances.a]]\n",
        "adapters = 1\n",
        "consumers = 1\n",
        "approval_clock = 1\n",
        'secret_service_socket = "run/bus"\n',
    ],
)
def test_a_name_or_a_value_that_does_not_fit_refuses_the_file(text):
    """In every place where one can stand."""
    refused(document(text))


def test_the_longest_of_everything_is_read():
    """The bounds themselves are inside."""
    name, url = "a" * 63, f"https://{'a' * 2040}"
    body = f'[connectors.{name}.instances.{name}]\nendpoint = "{url}"\n'
    (found,) = parse(document(body).encode()).entries
    assert (found.endpoint, len(found.alias)) == (url, 127)


@pytest.mark.clause("CLI-165", "CLI-170")
@pytest.mark.parametrize(
    "text",
    [
        entry("a") + entry("b", instance_id='"a-local"'),
        entry("a") + '[connectors.z.instances.i]\nalias = "a"\n',
        entry("a") + '[connectors.z.instances.i]\ninstance_id = "a-local"\n',
        '[connectors.z.instances.i]\nalias = "a"\n[connectors.z.instances.j]\nalias = "a"\n',
        '[connectors.a.instances."b.c"]\n[connectors."a.b".instances.c]\n',
        entry("support", adapter_id='"zendesk"') + SUPPORT,
        entry("a") + entry("a"),
    ],
)
def test_two_that_answer_to_one_name_refuse_the_file(text):
    """By alias, by id, or by connector and name."""
    refused(document(text))


@pytest.mark.clause("CLI-172")
def test_there_are_sixty_four_instances_at_most():
    """Of either kind."""
    body = entry() + "".join(f"[connectors.z.instances.i{number}]\n" for number in range(63))
    assert len(parse(document(body).encode()).entries) == 64
    refused(document(body + "[connectors.z.instances.more]\n"))


@pytest.mark.clause("CLI-183")
@pytest.mark.parametrize(
    "line",
    [
        f"pass_env = {listed('P', 65)}",
        'pass_env = [""]',
        'pass_env = ["A=B"]',
        f'pass_env = ["{"é" * 129}"]',
        "permissions = {connections = ['none']}",
        f"permissions = {{connections = {listed('a', 65)}}}",
        "permissions = {profiles = []}",
        "protocol = 'v1alpha1'",
    ],
)
def test_a_consumer_that_does_not_fit_refuses_the_file(line):
    """Its variables and its instances are named exactly, and within bounds."""
    head = f'[consumers.tool]\nexecutable = {{path = "/opt/tool", sha256 = "{DIGEST}"}}\n'
    assert parse(document(entry() + head).encode()).consumers
    refused(document(entry() + head + line + "\n"))
    refused(document(entry() + "[consumers.tool]\n"))


@pytest.mark.clause("CLI-175", "CLI-176", "CLI-180", "CLI-153")
@pytest.mark.parametrize("format_", [2, 3, 4, 5])
def test_an_entry_that_contradicts_its_format_is_named(format_):
    """The first by alias, with the format, and only where everything else is in order."""
    lacking = entry("b", private_protocol="") + entry("a", private_protocol="")
    found = refused(document(lacking, format_)).data
    assert found == {"configuration_format": f"connectors-local/{format_}", "instance_id": "a-local"}
    assert refused(document(f"more = 1\n{lacking}", format_)).data == {}
    assert refused(document(lacking, format_, owner=UID + 1)).data == {"configuration_rule": "owner_uid_mismatch"}


@pytest.mark.clause("CLI-152", "CLI-175")
def test_the_first_format_has_no_private_protocol():
    """With one, the entry contradicts it."""
    found = refused(document(entry("b"), 1)).data
    assert found == {"configuration_format": "connectors-local/1", "instance_id": "b-local"}


def test_an_approval_clock_is_left_as_it_stands():
    """Its own commands look at it; a file that has one can be read."""
    assert parse(document('[approval_clock]\nformat = "roughtime-clock/1"\n').encode()).entries == ()


@pytest.mark.clause("CLI-070", "CLI-060")
def test_a_mebibyte_is_read_and_a_byte_more_is_not(tmp_path):
    """Too large has no rule of its own here."""
    text = document()
    full = text + "#" * (2**20 - len(text))
    assert read(write(tmp_path, full)).entries == ()
    with pytest.raises(HeadwaterError) as caught:
        read(write(tmp_path, full + "#"))
    assert (caught.value.code, caught.value.data) == ("invalid_configuration", {})


@pytest.mark.parametrize("content", [b"\xff\xfe", b"format = \xff", b"\x00", b"a = " + b"[" * 9000])
def test_bytes_that_are_no_document_are_refused(content):
    """Whatever they are."""
    with pytest.raises(HeadwaterError) as caught:
        parse(content)
    assert (caught.value.code, caught.value.data) == ("invalid_configuration", {})


def test_a_byte_order_mark_and_crlf_are_read():
    """As editors on other systems write them."""
    text = "\ufeff" + document(SUPPORT).replace("\n", "\r\n")
    assert parse(text.encode()).entries[0].name == "zendesk/support"


@pytest.mark.clause("CLI-178")
def test_the_members_of_a_contradiction_are_told_of_no_other_code():
    """The format and the instance belong to the one refusal that names them."""
    members = {code: set(row.members.split()) for code, row in CODES.items()}
    for name in ("configuration_format", "instance_id"):
        assert [code for code, told in members.items() if name in told] == ["invalid_configuration"]


@pytest.mark.clause("CLI-165", "CLI-182")
def test_what_is_only_collected_stands_beside_what_is_configured():
    """Under its own names; where it would have the id of another, whose account would it be?"""
    configuration = parse(document(SUPPORT).encode())
    both = beside(configuration, [("zendesk", "support"), ("mail", "home")])
    assert [row.name for row in both.entries] == ["zendesk/support", "mail/home"]
    assert both.entries[0] == configuration.entries[0]
    assert (both.entries[1].alias, both.entries[1].instance_id) == ("mail.home", "mail.home")
    taken = parse(document('[connectors.a.instances.b]\ninstance_id = "mail.home"\n').encode())
    for known, collected in ((taken, [("mail", "home")]), (configuration, [("a.b", "c"), ("a", "b.c")])):
        with pytest.raises(HeadwaterError) as caught:
            beside(known, collected)
        assert caught.value.code == "invalid_configuration"
