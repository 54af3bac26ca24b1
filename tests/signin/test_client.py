"""The one HTTP client for providers: where it goes, and what it does not do."""

import asyncio
import gzip
import socket
import threading
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signin.certificates import certified
from signin.provider import Reply, provider

from headwater import limits
from headwater.connect.failures import AuthFailure
from headwater.errors import HeadwaterError
from headwater.outbound import client as outbound
from headwater.outbound.client import Bounds, Client, Reach, Unanswered
from headwater.outbound.waiting import retry_after

pytestmark = pytest.mark.anyio
OWN = Reach(private=True)


async def refusal(url: str, reach: Reach = OWN) -> tuple[str, bool]:
    with pytest.raises(Unanswered) as caught:
        await Client(reach).get(url)
    return caught.value.code, caught.value.sent


class TestWhereItGoes:
    @pytest.mark.clause("INT-453")
    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "localhost",
            "[::1]",
            "169.254.169.254",
            "10.0.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fe80::1]",
            "[fd00::1]",
            "[fec0::1]",
            "[64:ff9b:1::7f00:1]",
            "[::127.0.0.1]",
            "224.0.0.1",
            "2130706433",
            "0x7f000001",
        ],
    )
    async def test_private_addresses_are_refused(self, host):
        assert await refusal(f"https://{host}/", Reach()) == ("provider_protocol_error", False)

    @pytest.mark.clause("INT-453")
    @pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:21f:cb07::1", "64:ff9b::5db8:d822"])
    async def test_public_addresses_are_reached_over_tls_and_not_without(self, address):
        assert outbound._may_reach(address, Reach(), tls=True)
        assert not outbound._may_reach(address, OWN, tls=False)

    @pytest.mark.clause("INT-453")
    async def test_a_name_is_judged_by_all_its_addresses_and_the_judged_one_is_connected_to(self, monkeypatch):
        names = {"one": ["93.184.216.34", "127.0.0.1"], "two": ["127.0.0.1"]}

        async def resolved(host, port):
            return names[host]

        monkeypatch.setattr(outbound, "_resolved", resolved)
        assert await refusal("https://one/", Reach()) == ("provider_protocol_error", False)
        with provider(lambda asked: Reply()) as running:
            port = running.url.rpartition(":")[2]
            await Client(OWN).get(f"http://two:{port}/path?q=1")
        assert (running.asked[0].path, running.asked[0].headers["host"]) == ("/path?q=1", f"two:{port}")

    @pytest.mark.clause("INT-453")
    @pytest.mark.parametrize(
        "url", ["http://93.184.216.34/", "ftp://93.184.216.34/", "https:///x", "https://a:b:c/", "x"]
    )
    async def test_a_public_host_is_asked_over_https_only(self, url):
        assert await refusal(url, Reach()) == ("provider_protocol_error", False)

    async def test_private_addresses_beyond_this_machine_need_tls_too(self):
        assert await refusal("http://10.0.0.1/", OWN) == ("provider_protocol_error", False)

    @pytest.mark.clause("INT-493")
    async def test_a_host_that_is_not_declared_is_refused(self):
        with provider(lambda asked: Reply()) as running:
            reach = Reach(frozenset({"127.0.0.1"}), private=True)
            assert (await Client(reach).get(running.url)).status == 200
            other = running.url.replace("127.0.0.1", "localhost")
            assert await refusal(other, reach) == ("provider_protocol_error", False)
        assert len(running.asked) == 1

    def test_a_lookup_that_does_not_end_holds_up_nobody(self, monkeypatch):
        ends = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ends.wait(30) and [])
        began = time.monotonic()

        async def ask() -> None:
            with pytest.raises(Unanswered) as caught:
                await Client(OWN, Bounds(seconds=0.2)).get("https://example.org/")
            assert (caught.value.code, caught.value.sent) == ("provider_timeout", False)

        asyncio.run(ask())  # which waits for the threads of its own loop
        ends.set()
        assert time.monotonic() - began < 10

    async def test_another_address_of_a_name_is_tried_where_one_refuses(self, monkeypatch):
        async def resolved(host, port):
            return ["127.0.0.2", "127.0.0.1"]

        monkeypatch.setattr(outbound, "_resolved", resolved)
        with provider(lambda asked: Reply()) as running:
            assert (await Client(OWN).get(running.url)).status == 200


class TestTls:
    @pytest.mark.clause("INT-493")
    async def test_a_certificate_is_believed_by_the_authority_of_the_instance_only(self, tmp_path):
        ca_file, context = certified(tmp_path)
        with provider(lambda asked: Reply(), context) as running:
            assert (await Client(Reach(private=True, certificates=ca_file.read_text())).get(running.url)).status == 200
            assert await refusal(running.url) == ("provider_unavailable", False)

    @pytest.mark.clause("INT-493")
    async def test_a_certificate_of_another_name_is_refused(self, tmp_path, monkeypatch):
        async def resolved(host, port):
            return ["127.0.0.1"]

        monkeypatch.setattr(outbound, "_resolved", resolved)
        ca_file, context = certified(tmp_path)
        with provider(lambda asked: Reply(), context) as running:
            other = running.url.replace("127.0.0.1", "example.org")
            assert await refusal(other, Reach(private=True, certificates=ca_file.read_text())) == (
                "provider_unavailable",
                False,
            )

    async def test_a_connection_that_is_kept_is_of_one_name(self, tmp_path, monkeypatch):
        async def resolved(host, port):
            return ["127.0.0.1"]

        monkeypatch.setattr(outbound, "_resolved", resolved)
        ca_file, context = certified(tmp_path)
        with provider(lambda asked: Reply(), context, keeps=True) as running:
            async with Client(Reach(private=True, certificates=ca_file.read_text())) as client:
                assert (await client.get(running.url)).status == 200
                with pytest.raises(Unanswered):
                    await client.get(running.url.replace("127.0.0.1", "example.org"))
        assert [asked.headers["host"] for asked in running.asked] == [running.url.partition("//")[2]]

    @pytest.mark.parametrize("text", ["nothing", "", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
    async def test_certificates_that_are_none_are_told(self, text):
        with pytest.raises(HeadwaterError) as caught:
            await Client(Reach(certificates=text)).get("https://93.184.216.34/")
        assert caught.value.code == "invalid_configuration"


class TestOneRequestOneAnswer:
    @pytest.mark.clause("INT-453", "INT-493")
    async def test_no_redirect_is_followed(self):
        with provider(lambda asked: Reply(302, headers={"Location": "http://127.0.0.1:9/"})) as running:
            assert (await Client(OWN).get(running.url)).status == 302
        assert len(running.asked) == 1

    @pytest.mark.clause("INT-493")
    @pytest.mark.parametrize("status", [429, 500, 503])
    async def test_nothing_is_sent_twice(self, status):
        with provider(lambda asked: Reply(status)) as running:
            assert (await Client(OWN).post(running.url, {"a": "b"})).status == status
        assert [asked.form for asked in running.asked] == [{"a": "b"}]

    @pytest.mark.clause("INT-493")
    @pytest.mark.parametrize(
        "reply",
        [
            Reply(body=b"x" * (limits.OUTBOUND_ANSWER_BYTES + 1)),
            Reply(body=gzip.compress(b"x" * 10_000_000), headers={"Content-Encoding": "gzip"}),
            Reply(cut=True),
        ],
        ids=["large", "packed", "cut"],
    )
    async def test_an_answer_that_is_not_whole_and_bounded_counts_as_sent(self, reply):
        with provider(lambda asked: reply) as running:
            assert await refusal(running.url) == ("provider_protocol_error", True)

    async def test_what_was_not_connected_was_not_sent(self):
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            assert await refusal(f"http://127.0.0.1:{bound.getsockname()[1]}/") == ("provider_unavailable", False)

    async def test_a_name_that_there_is_not_was_not_sent_to(self):
        assert await refusal("https://headwater.invalid/") == ("provider_unavailable", False)

    @pytest.mark.clause("INT-493")
    async def test_an_answer_has_a_deadline(self):
        assert Bounds().seconds == limits.OUTBOUND_SECONDS
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            with pytest.raises(Unanswered) as caught:
                await Client(OWN, Bounds(0.2)).get(f"http://127.0.0.1:{silent.getsockname()[1]}/")
            assert (caught.value.code, caught.value.sent) == ("provider_timeout", True)

    @pytest.mark.clause("INT-493")
    async def test_the_surroundings_have_no_say(self, monkeypatch, tmp_path):
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login sentinel password sentinel")
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        with provider(lambda asked: Reply()) as running:
            assert (await Client(OWN).get(running.url)).status == 200
        assert "authorization" not in running.asked[0].headers

    async def test_many_requests_at_once_do_not_share_anything(self):
        with provider(lambda asked: Reply(body={"path": asked.path})) as running:
            answers = await asyncio.gather(*(Client(OWN).get(f"{running.url}/{n}") for n in range(8)))
        assert [answer.body for answer in answers] == [b'{"path": "/%d"}' % n for n in range(8)]

    async def test_a_header_that_cannot_be_sent_is_not(self):
        with provider(lambda asked: Reply()) as running, pytest.raises(Unanswered) as caught:
            await Client(OWN).get(running.url, {"X-One": "a\r\nX-Two: b"})
        assert (caught.value.code, caught.value.sent, running.asked) == ("provider_protocol_error", False, [])


ARRIVED = datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)


class TestWaiting:
    @pytest.mark.clause("INT-286")
    @pytest.mark.parametrize(
        ("lines", "seconds"),
        [
            ([], None),
            (["7"], 7),
            (["0"], 0),
            ([" 7 "], 7),
            (["7", "7"], 7),
            (["7", "8"], None),
            (["nan"], None),
            (["inf"], None),
            (["-1"], None),
            (["1.5"], None),
            (["1e3"], None),
            (["٧"], None),
            (["4294967295"], 4_294_967_295),
            (["4294967296"], None),
            (["99999999999999999999"], None),
            (["Thu, 01 Jan 2026 12:00:07 GMT"], 7),
            (["Thu, 01 Jan 2026 11:00:00 GMT"], 0),
            (["Thu, 01 Jan 2199 00:00:00 GMT"], None),
            (["Thu, 99 Jan 2026 12:00:07 GMT"], None),
            (["soon"], None),
        ],
    )
    async def test_a_wait_is_whole_seconds_or_nothing(self, lines, seconds):
        assert retry_after(lines, ARRIVED) == seconds

    @given(st.lists(st.text(max_size=40), max_size=3))
    def test_any_text_is_read_into_a_bounded_number(self, lines):
        found = retry_after(lines, ARRIVED)
        assert found is None or (type(found) is int and 0 <= found <= 4_294_967_295)

    @pytest.mark.clause("INT-286")
    async def test_a_sign_in_is_told_to_wait_a_day_at_most(self):
        assert AuthFailure("provider_rate_limited", retry_after=4_294_967_295).retry_after == 24 * 3600


class TestBounds:
    async def test_an_answer_that_is_larger_than_what_is_taken_is_told_as_that(self):
        with provider(lambda asked: Reply(body=b"12345")) as running:
            assert (await Client(OWN, Bounds(answer_bytes=5)).get(running.url)).body == b"12345"
            with pytest.raises(Unanswered) as caught:
                await Client(OWN, Bounds(answer_bytes=4)).get(running.url)
        assert (caught.value.too_large, caught.value.sent) == (True, True)

    @pytest.mark.parametrize("sent", [False, True])
    async def test_a_deadline_tells_whether_anything_was_sent_before_it(self, sent):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            url = f"http://127.0.0.1:{port}/" if sent else f"https://127.0.0.1:{port}/"
            with pytest.raises(Unanswered) as caught:
                await Client(OWN, Bounds(seconds=0.5)).get(url)
        assert (caught.value.code, caught.value.sent) == ("provider_timeout", sent)

    async def test_the_type_of_the_body_and_where_a_redirect_leads_are_told(self):
        head = {"Content-Type": "Text/HTML; charset=utf-8", "Location": "/there"}
        with provider(lambda asked: Reply(status=302, headers=head)) as running:
            answer = await Client(OWN).get(running.url)
        assert (answer.media_type, answer.location, len(running.asked)) == ("text/html", "/there", 1)
