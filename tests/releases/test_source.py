"""Where a release comes from: what may be typed, a repository over real HTTPS, a folder, and each way not to answer."""

import os
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from releases.making import ASSET, FILES, INPUT, NOT_FOUND, TAG, UNAVAILABLE, Person, digest, packed
from signin.certificates import certified
from signin.provider import Asked, Provider, Reply, provider

from headwater import limits
from headwater.outbound import client

PATH = f"/acme/definitions/releases/download/{TAG}"


class Forge:
    """A forge that serves what lies in a folder, or what a test says of a path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: dict[str, Reply] = {}

    def __call__(self, asked: Asked) -> Reply:
        if asked.path in self.said:
            return self.said[asked.path]
        file = self.folder / asked.path.removeprefix("/acme/definitions/releases/download/")
        return Reply(body=file.read_bytes()) if file.is_file() else Reply(404)

    def redirect(self, path: str, *steps: str, status: int = 302) -> None:
        """Lead from a path by steps."""
        for here, there in zip((path, *steps), steps, strict=False):
            self.said[here] = Reply(status, headers={"Location": there})


@pytest.fixture
def forge(person: Person) -> Forge:
    return Forge(person.source)


@pytest.fixture
def running(person: Person, forge: Forge, tmp_path: Path) -> Iterator[Provider]:
    """That forge over HTTPS, whose certificate the person trusts, with a release."""
    person.ca_file, context = certified(tmp_path)
    person.publish()
    with provider(forge, context) as running:
        yield running


@pytest.mark.clause("CLI-502")
@pytest.mark.parametrize(
    "source",
    [
        "",
        "http://forge.example/acme/definitions",
        "HTTP://forge.example/acme",
        "ssh://forge.example/acme",
        "git@forge.example:acme/definitions.git",
        "file:///srv/definitions",
        "ftp://forge.example/acme",
        "https:forge.example",
        "https://",
        "https:///acme",
        "https://ada@forge.example/acme",
        "https://ada:secret@forge.example/acme",
        "https://@forge.example/acme",
        "https://forge.example/acme?x=1",
        "https://forge.example/acme?",
        "https://forge.example/acme#x",
        "https://forge.example/acme#",
        "https://forge.example:port/",
        "https://forge.example:99999/",
        "https://forge.example:0/",
        "https://[::1",
        "https://1.2.3.999/acme",
        "https://[v1.x]/acme",
        "https://forge.example/a b",
        "https://forge.example/a\nb",
        "https://forge.example\\@other.example/",
        " https://forge.example/",
        "https://forgé.example/",
        f"https://forge.example/{'a' * 4_096}",
        "/srv/\0definitions",
    ],
)
def test_a_source_is_a_folder_or_a_plain_url_over_https(source, person, monkeypatch):
    monkeypatch.setattr(client, "_resolved", None)  # no name is looked up, or this ends otherwise
    assert person.code(source) == INPUT


@pytest.mark.clause("CLI-503")
@pytest.mark.parametrize("tag", ["", ".", "..", "a/b", "a b", "a\n", "../0.3.0", "ä", "a" * 129, "a\0"])
def test_a_tag_is_a_short_plain_word(tag, person):
    person.publish()
    assert person.code(tag=tag) == INPUT


@pytest.mark.clause("CLI-503", "CLI-518")
@pytest.mark.parametrize("tag", ["a" * 128, "...", "v1.2_rc-1", "-"])
def test_every_other_tag_is_one(tag, person):
    person.publish(under=tag)
    assert person.install(tag=tag)["tag"] == tag


class TestRepository:
    @pytest.mark.clause("CLI-502", "CLI-521")
    def test_a_release_is_read_from_where_a_repository_has_its_downloads(self, person, running):
        told = person.install(f"{running.url}/acme/definitions/")
        assert [asked.path for asked in running.asked] == [f"{PATH}/index.json", f"{PATH}/{ASSET}"]
        assert told["source"] == person.lock()["source"] == f"{running.url}/acme/definitions"
        assert told["files"] == len(FILES)

    @pytest.mark.clause("CLI-505")
    def test_nothing_is_told_of_the_person(self, person, running):
        person.install(f"{running.url}/acme/definitions")
        names = {name for asked in running.asked for name in asked.headers}
        assert names <= {"host", "user-agent", "accept", "accept-encoding", "connection"}

    @pytest.mark.clause("CLI-504")
    def test_a_name_of_an_asset_stays_one_step_of_the_address(self, person, running):
        name = "a?b#c%2e d.gz"
        asset = packed(FILES)
        (person.source / TAG).mkdir(exist_ok=True)
        person.publish(asset={"name": name, "sha256": digest(asset)})
        assert person.code(f"{running.url}/acme/definitions") == NOT_FOUND
        assert running.asked[-1].path == f"{PATH}/a%3Fb%23c%252e%20d.gz"

    @pytest.mark.clause("CLI-504")
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_five_redirects_are_followed(self, status, person, running, forge):
        steps = [*(f"/{step}" for step in range(4)), f"{PATH}/index.json?signed=1"]
        forge.said[steps[-1]] = Reply(body=(person.source / TAG / "index.json").read_bytes())
        forge.redirect(f"{PATH}/index.json", *steps, status=status)
        person.install(f"{running.url}/acme/definitions")
        assert len(running.asked) == 1 + 5 + 1

    @pytest.mark.clause("CLI-504", "CLI-526")
    def test_a_sixth_redirect_is_not(self, person, running, forge):
        forge.redirect(f"{PATH}/index.json", *(f"/{step}" for step in range(5)), f"{PATH}/{ASSET}")
        assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE
        assert len(running.asked) == 6

    @pytest.mark.clause("CLI-504", "CLI-526")
    @pytest.mark.parametrize("user", ["", "ada@", "ada:secret@"])
    def test_a_redirect_leads_to_https_without_a_password_or_is_not_followed(self, user, person, running, forge):
        with provider(lambda asked: Reply(body=b"{}")) as plain:
            scheme = "https" if user else "http"
            elsewhere = (running if user else plain).url.partition("://")[2]
            forge.redirect(f"{PATH}/index.json", f"{scheme}://{user}{elsewhere}/there")
            assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE
            assert (len(running.asked), plain.asked) == (1, [])

    @pytest.mark.clause("CLI-526")
    @pytest.mark.parametrize(
        "location", ["https://localhost:{port}/there", "https://1.2.3.999", "https://[::1", "ftp://x/", None]
    )
    def test_a_redirect_to_nowhere_or_to_another_private_host_is_not_followed(self, location, person, running, forge):
        port = running.url.rpartition(":")[2]
        head = {} if location is None else {"Location": location.format(port=port)}
        forge.said[f"{PATH}/index.json"] = Reply(302, headers=head)
        assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE
        assert len(running.asked) == 1

    @pytest.mark.clause("CLI-525")
    @pytest.mark.parametrize("file", ["index.json", ASSET])
    def test_a_file_that_there_is_not_is_not_found(self, file, person, running, forge):
        forge.said[f"{PATH}/{file}"] = Reply(404)
        assert person.code(f"{running.url}/acme/definitions") == NOT_FOUND

    @pytest.mark.clause("CLI-526")
    @pytest.mark.parametrize("status", [204, 206, 304, 400, 401, 403, 410, 429, 500, 503])
    def test_any_other_status_is_unavailable(self, status, person, running, forge):
        forge.said[f"{PATH}/{ASSET}"] = Reply(status)
        assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE

    @pytest.mark.clause("CLI-526")
    def test_an_answer_that_breaks_off_or_is_packed_is_unavailable(self, person, running, forge):
        for reply in (Reply(body=b"{", cut=True), Reply(body=b"{}", headers={"Content-Encoding": "gzip"})):
            forge.said[f"{PATH}/index.json"] = reply
            assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE

    @pytest.mark.clause("CLI-526")
    def test_nobody_who_answers_is_unavailable(self, person):
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            assert person.code(f"https://127.0.0.1:{bound.getsockname()[1]}/acme") == UNAVAILABLE

    @pytest.mark.clause("CLI-526")
    def test_somebody_silent_is_unavailable_in_time(self, person, monkeypatch):
        monkeypatch.setattr(limits, "RELEASE_SECONDS", 0.3)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            assert person.code(f"https://127.0.0.1:{silent.getsockname()[1]}/acme") == UNAVAILABLE

    @pytest.mark.clause("CLI-504")
    def test_the_surroundings_name_no_proxy_and_no_certificates(self, person, running, monkeypatch):
        with provider(lambda asked: Reply()) as proxy:
            for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, proxy.url)
            person.install(f"{running.url}/acme/definitions")
            monkeypatch.setenv("SSL_CERT_FILE", str(person.ca_file))
            person.ca_file = None
            assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE
            assert proxy.asked == []

    @pytest.mark.clause("CLI-504", "CLI-526")
    def test_an_index_of_more_than_4_mib_is_not_read(self, person, running, forge):
        forge.said[f"{PATH}/index.json"] = Reply(body=whole_index(person, 4 * limits.MIB))
        person.install(f"{running.url}/acme/definitions")
        forge.said[f"{PATH}/index.json"] = Reply(body=whole_index(person, 4 * limits.MIB + 1))
        assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE

    @pytest.mark.clause("CLI-504", "CLI-526")
    def test_an_asset_of_more_than_64_mib_is_not_read(self, person, running, forge):
        forge.said[f"{PATH}/{ASSET}"] = Reply(body=bytes(64 * limits.MIB))
        assert person.refusal(f"{running.url}/acme/definitions").code == "digest_mismatch"
        forge.said[f"{PATH}/{ASSET}"] = Reply(body=bytes(64 * limits.MIB + 1))
        assert person.code(f"{running.url}/acme/definitions") == UNAVAILABLE

    def test_an_asset_is_held_once(self, person, running, forge):
        forge.said[f"{PATH}/{ASSET}"] = Reply(body=bytes(32 * limits.MIB))
        tracemalloc.start()
        try:
            assert person.refusal(f"{running.url}/acme/definitions").code == "digest_mismatch"
            assert tracemalloc.get_traced_memory()[1] < 48 * limits.MIB
        finally:
            tracemalloc.stop()


def whole_index(person: Person, size: int) -> bytes:
    """Return the index of the published release, with spaces at its end up to a size."""
    return (person.source / TAG / "index.json").read_bytes().ljust(size)


class TestFolder:
    @pytest.mark.clause("CLI-502", "CLI-521")
    def test_a_folder_is_known_by_its_canonical_path(self, person, monkeypatch):
        person.publish()
        (person.home / "link").symlink_to("source")
        monkeypatch.chdir(person.home)
        for source in ("source", "./source/", "../" + person.home.name + "/link", str(person.home / "link")):
            assert person.install(source)["source"] == person.lock()["source"] == str(person.source)

    @pytest.mark.clause("CLI-525")
    def test_a_folder_or_file_that_there_is_not_is_not_found(self, person):
        assert person.code() == NOT_FOUND
        person.publish()
        assert person.code(tag="0.3.1") == NOT_FOUND
        assert person.code(str(person.source / TAG / ASSET)) == NOT_FOUND
        (person.source / TAG / ASSET).unlink()
        assert person.code() == NOT_FOUND
        (person.source / TAG / "index.json").unlink()
        assert person.code() == NOT_FOUND

    @pytest.mark.clause("CLI-525")
    def test_what_is_no_file_is_not_found_and_not_waited_for(self, person):
        person.publish()
        (person.source / TAG / ASSET).unlink()
        os.mkfifo(person.source / TAG / ASSET)
        assert person.code() == NOT_FOUND
        (person.source / TAG / ASSET).unlink()
        (person.source / TAG / ASSET).mkdir()
        assert person.code() == NOT_FOUND

    @pytest.mark.clause("CLI-526")
    def test_a_folder_that_cannot_be_read_is_unavailable(self, person):
        (person.home / "source").symlink_to("source")
        assert person.code() == UNAVAILABLE
        assert person.code(f"/{'a' * 5_000}") == UNAVAILABLE

    @pytest.mark.clause("CLI-526")
    def test_a_file_over_its_bound_is_unavailable(self, person):
        person.publish()
        index, asset = person.source / TAG / "index.json", person.source / TAG / ASSET
        index.write_bytes(whole_index(person, 4 * limits.MIB))
        person.install()
        with asset.open("r+b") as file:
            file.truncate(64 * limits.MIB + 1)
        assert person.code() == UNAVAILABLE
        index.write_bytes(whole_index(person, 4 * limits.MIB + 1))
        assert person.code() == UNAVAILABLE
