"""What an instance that opted in to a release is refused, and that nothing is sent or written then."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from operate.desk import HEAD
from releases.shelf import AUTH, Shelf, definition, refusal

from headwater.configuration.selecting import Selection
from headwater.owner.served import automatic, identified

ABSENT = "f" * 64


def tampered(path: Path) -> Path:
    """Make a file of a release one that can be written."""
    path.parent.chmod(0o755)
    path.chmod(0o644)
    return path


def edited(path: Path) -> None:
    """Change a byte of a file, and neither its size nor its mode."""
    content = tampered(path).read_bytes()
    path.write_bytes(content.replace(b"What was ordered", b"What was orderee"))
    path.chmod(0o444)


def cut(path: Path) -> None:
    tampered(path).write_bytes(b"")


def removed(path: Path) -> None:
    tampered(path).unlink()


def linked(path: Path) -> None:
    """Have a link in the place of a file, to the same bytes."""
    content = tampered(path).read_bytes()
    elsewhere = path.parents[4] / "elsewhere.toml"
    elsewhere.write_bytes(content)
    path.unlink()
    path.symlink_to(elsewhere)


def opened_up(path: Path) -> None:
    """Let others write a file."""
    path.chmod(0o666)


def grown(path: Path) -> None:
    with tampered(path).open("ab") as file:
        file.write(b"\n# more\n")


class TestUse:
    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize(
        "release", ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 62 + "..", "../" + "0" * 61, "latest"]
    )
    def test_what_is_no_digest_names_no_release(self, shelf, release):
        before = shelf.collect.read_bytes()
        refused = refusal(shelf.desk.host.opting.use, "shop/me", release)
        assert (refused.code, refused.data) == ("invalid_input", {"field": "release"})
        assert shelf.collect.read_bytes() == before

    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize("name", ["acme", "acme/", "/me", "acme/me/too", "a b/me", "acme.x/me"])
    def test_what_names_no_instance_is_given_no_release(self, shelf, name):
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        assert refusal(shelf.desk.host.opting.use, name, digest).code == "invalid_input"

    @pytest.mark.clause("CLI-528")
    def test_a_release_that_is_not_installed_serves_nobody(self, shelf):
        before = shelf.collect.read_bytes()
        shelf.install({"services/shop.toml": definition(shelf.url)})
        refused = refusal(shelf.desk.host.opting.use, "shop/me", ABSENT)
        assert (refused.code, refused.command) == ("not_found", "headwater definitions list")
        assert shelf.collect.read_bytes() == before

    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize(
        "files",
        [
            {},
            {"services/other.toml": b"", "README.md": b"acme"},
            {"services/acme.toml": b"acme = 1"},
            {"services/acme.toml": b'format = "connectors-definition/2"'},
            {"acme/services.txt": definition("https://acme.example")},
            {"services/acme.toml": definition("https://acme.example", more='id = "other"')},
            {"services/acme/other.toml": definition("https://acme.example")},
        ],
        ids=["empty", "others", "no format", "another format", "text", "another id", "another name"],
    )
    def test_a_release_without_the_connector_does_not_serve_it(self, shelf, files):
        before = shelf.collect.read_bytes()
        assert refusal(shelf.desk.host.opting.use, "acme/me", shelf.install(files)).code == "not_found"
        assert shelf.collect.read_bytes() == before

    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize(
        "files",
        [
            {"services/acme.toml": definition("https://acme.example", more="bogus = 1")},
            {"services/acme.toml": HEAD.encode() + b"[[["},
            {"services/acme.toml": definition("https://acme.example", auth='[[auth.methods]]\nuse = "auth/none.toml"')},
            {"a/acme.toml": definition("https://a.example"), "b/acme.toml": definition("https://b.example")},
        ],
        ids=["a fault", "no TOML", "what it shares is not there", "twice"],
    )
    def test_a_definition_that_cannot_be_used_is_refused_before_anything_is_written(self, shelf, files):
        before = shelf.collect.read_bytes()
        refused = refusal(shelf.desk.host.opting.use, "acme/me", shelf.install(files))
        assert (refused.code, refused.exit_status) == ("release_invalid", 1)
        assert "bogus" not in f"{refused.message}{refused.data}"
        assert shelf.collect.read_bytes() == before

    def test_why_a_definition_cannot_be_used_is_one_command_away(self, shelf):
        digest = shelf.install({"services/acme.toml": definition("https://acme.example", more="bogus = 1")})
        refused = refusal(shelf.desk.host.opting.use, "acme/me", digest)
        failure = shelf.desk.headwater.type(*refused.command.split()[1:]).failure
        assert "bogus" in failure["explanation"][0]

    @pytest.mark.clause("CLI-528")
    def test_what_a_definition_shares_never_leads_out_of_the_release(self, shelf):
        """`services/` is where the definition lies: the folder above it is the release's own top, and no further."""
        for path in ("acme.toml", "services/acme.toml"):
            for use in ("../token.toml", "token.toml"):
                auth = f'[[auth.methods]]\nuse = "{use}"\n'
                digest = shelf.install({path: definition(shelf.url, auth=auth)})
                for place in (digest, f"{digest}/files"):
                    shelf.kept(place).chmod(0o755)
                    shelf.kept(place, "token.toml").write_text(AUTH)
                assert refusal(shelf.desk.host.opting.use, "acme/me", digest).code == "release_invalid"

    @pytest.mark.clause("CLI-528")
    def test_the_instance_of_a_definition_on_the_command_line_is_that_definitions(self, shelf):
        file = shelf.desk.headwater.place / "acme.toml"
        file.write_bytes(definition(shelf.url))
        defining = shelf.desk.host.defining(file, None)
        with defining.recorded(defining.named(None)) as name:
            assert name == "acme/definition"
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        refused = refusal(shelf.desk.host.opting.use, "acme/definition", digest)
        assert (refused.code, refused.data) == ("invalid_input", {"field": "target"})
        assert refusal(shelf.desk.host.opting.leave, "acme/definition").code == "invalid_input"
        row = f'\n[instances."acme/definition"]\nrelease = "{digest}"\n'
        shelf.collect.write_text(f"{shelf.collect.read_text()}{row}")
        refused = refusal(shelf.desk.host.defining(file, None).named, None)
        assert refused.data["configuration_rule"] == "definition_instance_configured"

    @pytest.mark.clause("CLI-528")
    def test_a_disabled_connector_is_served_by_no_release(self, shelf):
        shelf.desk.configure(head="[connectors.acme]\nenabled = false\n")
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        assert refusal(shelf.desk.host.opting.use, "acme/me", digest).code == "invalid_configuration"

    @pytest.mark.clause("CLI-528")
    def test_an_integration_that_is_disabled_here_connects_nobody_by_a_release_either(self, shelf):
        shelf.opted("shop/me", {"services/shop.toml": definition(shelf.url)})
        shelf.desk.host.instances.enable("shop", enabled=False)
        assert refusal(shelf.connect, "shop/me").code == "forbidden"
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_an_instance_that_pins_its_program_is_served_by_that_alone(self, shelf):
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        program = f'executable.path = "/bin/true"\nexecutable.sha256 = "{ABSENT}"\nexecutable.args = []\n'
        row = (
            '[connectors.acme.instances.me]\nalias = "acme"\ninstance_id = "acme-1"\nadapter_id = "a"\n'
            'configuration_revision = "1"\nprotocol = "v1alpha1"\n'
            'private_protocol = "connectors-private/2"\nstartup = "on-demand"\n'
            f'restart = "never"\n{program}'
        )
        path = shelf.desk.headwater.place / "config.toml"
        path.write_text(f"{path.read_text()}{row}")
        assert refusal(shelf.desk.host.opting.use, "acme/me", digest).code == "unsupported"

    def test_a_configuration_comes_first(self, shelf):
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        (shelf.desk.headwater.place / "config.toml").unlink()
        refused = refusal(shelf.desk.host.opting.use, "acme/me", digest)
        assert refused.data["configuration_rule"] == "config_missing"


class TestReading:
    """Each look and each request reads the release anew: what is not as it was installed is not believed."""

    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize("change", [edited, cut, removed, linked, opened_up, grown])
    def test_a_file_that_changed_after_it_was_installed_sends_nothing(
        self, shelf: Shelf, served: str, change: Callable[[Path], None]
    ):
        change(shelf.kept(served, "files/services/acme.toml"))
        refused = shelf.desk.refused(name="acme/me")
        assert (refused.code, refused.data) == ("digest_mismatch", {"file": "services/acme.toml"})
        for work in (shelf.operations, shelf.revision, shelf.connect):
            assert refusal(work, "acme/me").code == "digest_mismatch"
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize("change", [cut, removed, linked, opened_up, grown])
    def test_an_index_that_changed_is_not_the_release(self, shelf: Shelf, served: str, change: Callable[[Path], None]):
        change(shelf.kept(served, "index.json"))
        refused = shelf.desk.refused(name="acme/me")
        assert (refused.code, refused.data) == ("digest_mismatch", {"file": "index.json"})
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_what_it_shares_is_held_to_its_digest_too(self, shelf):
        files = {
            "services/acme.toml": definition(shelf.url, auth='[[auth.methods]]\nuse = "auth/token.toml"\n'),
            "auth/token.toml": AUTH.encode(),
        }
        digest = shelf.opted("acme/me", files)
        path = tampered(shelf.kept(digest, "files/auth/token.toml"))
        path.write_text(AUTH.replace("/whoami", "/whoarm"))
        assert shelf.desk.refused(name="acme/me").data == {"file": "auth/token.toml"}

    @pytest.mark.clause("CLI-528")
    def test_a_release_that_is_gone_describes_nothing(self, shelf, served):
        shelf.kept(served).rename(shelf.desk.headwater.place / "gone")
        for work in (shelf.operations, shelf.connect):
            refused = refusal(work, "acme/me")
            assert (refused.code, refused.next_action) == ("description_unavailable", "check_configuration")
            assert refused.command == "headwater definitions list"
        failure = shelf.desk.headwater.type("invoke", "acme/me", "orders.list", "--input-json", "{}").failure
        assert failure["code"] == "description_unavailable"
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_what_was_connected_by_a_release_that_is_gone_can_be_seen_and_revoked(self, shelf, served):
        shelf.kept(served).rename(shelf.desk.headwater.place / "gone")
        headwater = shelf.desk.headwater
        told = headwater.type("connections", "describe", "acme/me").result["connection"]
        assert (told["state"], told["stale"]) == ("pending", True)
        assert len(headwater.type("connections", "list", "acme/me").result["connections"]) == 1
        gone = headwater.type("connections", "revoke", "acme/me", "--expected-revision", str(told["revision"])).result
        assert gone["local_state"] == "revoked"

    def test_a_folder_of_another_release_is_not_taken_for_it(self, shelf, served):
        other = shelf.install({"services/acme.toml": definition(shelf.url, more='title = "Other"')}, "0.4.0")
        shelf.kept(served).rename(shelf.desk.headwater.place / "gone")
        shelf.kept(other).rename(shelf.kept(served))
        assert shelf.desk.refused(name="acme/me").data == {"file": "index.json"}

    @pytest.mark.clause("CLI-528")
    def test_an_entry_that_is_a_link_is_not_the_release(self, shelf, served):
        elsewhere = shelf.kept(served).rename(shelf.desk.headwater.place / "elsewhere")
        shelf.kept(served).symlink_to(elsewhere)
        assert shelf.desk.refused(name="acme/me").data == {"file": served}

    @pytest.mark.clause("CLI-528")
    def test_releases_that_others_can_put_there_are_not_read(self, shelf, served):
        shelf.kept(served).parent.chmod(0o777)
        assert shelf.desk.refused(name="acme/me").code == "description_unavailable"
        assert shelf.desk.running.asked == []

    @pytest.mark.clause("CLI-528")
    def test_a_release_that_a_newer_headwater_installed_is_told_to_be_newer(self, shelf, served):
        """Both what it is written in and what it needs are checked where it is read, as where it is installed."""
        from hashlib import sha256

        for members, code in (
            ({"schema": "urn:next"}, "unknown_format_version"),
            ({"features": ["next"]}, "unmet_feature"),
        ):
            index = json.loads(shelf.kept(served, "index.json").read_bytes()) | members
            document = json.dumps(index).encode()
            digest = sha256(document).hexdigest()
            shelf.kept(digest).mkdir(0o755)
            shelf.kept(digest, "index.json").write_bytes(document)
            refused = refusal(shelf.desk.host.opting.use, "acme/me", digest)
            assert (refused.code, refused.safe) == (code, "Nothing was written.")

    @pytest.mark.clause("CLI-528")
    @pytest.mark.parametrize("key", ['"latest"', '""', "7", "[]", f'"{"A" * 64}"', f'"{"0" * 63}"'])
    def test_a_key_that_names_no_digest_refuses_the_file(self, shelf, key):
        shelf.collect.write_text(f'{shelf.collect.read_text()}\n[instances."acme/me"]\nrelease = {key}\n')
        refused = shelf.desk.refused(name="acme/me")
        assert refused.code == "invalid_configuration"
        assert key not in refused.message

    @pytest.mark.clause("CLI-528")
    def test_a_connector_that_is_disabled_is_asked_nothing(self, shelf, served):
        config = shelf.desk.headwater.place / "config.toml"
        config.write_text(f"{config.read_text()}\n[connectors.acme]\nenabled = false\n")
        assert shelf.desk.refused(name="acme/me").code == "invalid_configuration"
        assert shelf.desk.running.asked == []

    def test_one_broken_release_takes_nothing_from_the_other_instances(self, shelf, served):
        """The owner finds each instance by itself, and starts what can be started."""
        removed(shelf.kept(served, "index.json"))
        settings = shelf.desk.host.settings
        assert identified(settings, "shop.me").connector == "shop"
        assert refusal(identified, settings, "acme.me").code == "digest_mismatch"
        config = shelf.desk.headwater.place / "config.toml"
        config.write_text(f'{config.read_text()}startup = "automatic"\n')
        assert list(automatic(settings)) == []
        listed = shelf.desk.host.configuring.instances()["instances"]
        assert {row["instance_id"] for row in listed} == {"shop.me", "acme.me"}

    def test_a_profile_that_the_release_does_not_declare_is_refused(self, shelf):
        shelf.place("acme/me", table='profile = "oauth"\n')
        digest = shelf.install({"services/acme.toml": definition(shelf.url)})
        assert refusal(shelf.desk.host.opting.use, "acme/me", digest).code == "invalid_configuration"
        assert refusal(shelf.desk.host.connecting.target, Selection("acme", "me")).code == "not_found"
