"""Adapters under their owner: one process an instance, started together, stopped exactly, never left unexplained."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from adapters.conftest import ACME
from owner.conftest import METHODS

from headwater.connect.envelope import Credential, Envelope
from headwater.errors import HeadwaterError
from headwater.owner.served import identified
from headwater.owner.supervisor import Supervisor
from headwater.secret import Secret
from headwater.settings import Settings

SOURCE = (ACME / "integration.py").read_text()


NONSENSE = """
for number in range(1, 16):
    try:
        os.write(number, b'{"hooks": [[]]}\\n')
    except OSError:
        pass
"""


def signed_in(machine, name="a", token="token-of-ada"):
    async def work():
        signs = machine.signs_in(f"acme_tickets.{name}")
        return await signs.start(METHODS["token"], {"token": Secret(token)})

    return asyncio.run(work())


def refused(machine, name="a"):
    with pytest.raises(HeadwaterError) as refusal:
        signed_in(machine, name)
    return refusal.value


def stopped(machine, name="a", **others):
    seen = machine.status(name)
    told = {
        "expected-revision": seen["configuration_revision"],
        "host-incarnation": seen["host_incarnation"],
        "child-incarnation": seen.get("child_incarnation", "none"),
        **others,
    }
    named = [word for item, value in told.items() for word in (f"--{item}", value)]
    return ["instances", "stop", "--connector", "acme_tickets", "--instance", name, *named]


def programs(machine):
    """Return the processes that run an adapter of this machine."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = b"headwater.sdk.adapter" in words and str(machine.folder).encode() in words[-2]
        if ours and Path(words[0].decode()).name not in ("bwrap", "setpriv"):
            found.append(int(entry.name))
    return found


def until(condition):
    """Wait for something that a process brings about."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.clause("CLI-801")
def test_signing_in_starts_the_owner_and_the_program(machine, acme):
    """By the hooks, in a process that the owner keeps for the next time."""
    machine.instance("a", acme.endpoint)
    assert machine.status("a")["state"] == "owner_unavailable"
    assert signed_in(machine).account.id == "ada"
    first = machine.status("a")
    assert first["state"] == "ready"
    signed_in(machine)
    assert machine.status("a")["child_incarnation"] == first["child_incarnation"]


def test_every_step_of_a_sign_in_goes_through_the_owner(machine, acme):
    machine.instance("a", acme.endpoint)

    async def work():
        signs = machine.signs_in("acme_tickets.a")
        fields = {"email": Secret("ada@example.com")}
        challenge = await signs.start(METHODS["code"], fields)
        assert (challenge.target, challenge.upstream) == ("a***@example.com", {"id": "c-1"})
        envelope = await signs.complete(METHODS["code"], fields, challenge, {"code": Secret("123456")})
        newer = await signs.refresh(METHODS["code"], Credential(envelope))
        probed = await signs.probe(METHODS["code"], Credential(newer))
        assert (probed.account.id, newer.access_token.text()) == ("ada", "token-2")
        assert await signs.disconnect(METHODS["code"], Credential(newer))

    asyncio.run(work())
    assert acme.asked[-1] == "POST /sign-out"


@pytest.mark.clause("CLI-803")
def test_those_who_ask_at_once_share_one_start(machine, acme):
    machine.instance("a", acme.endpoint)
    machine.start()

    async def work():
        signs = machine.signs_in("acme_tickets.a")
        credential = Credential(Envelope(Secret("token-of-ada")))
        probed = await asyncio.gather(*(signs.probe(METHODS["token"], credential) for _ in range(10)))
        assert {one.account.id for one in probed} == {"ada"}

    asyncio.run(work())
    assert len(programs(machine)) == 1


@pytest.mark.clause("CLI-803")
def test_each_of_them_waits_until_a_deadline_of_its_own(machine, acme):
    """One gives up, the start goes on, and the other one has it."""
    instance_id = machine.instance("a", acme.endpoint, code=f"import time\ntime.sleep(2)\n{SOURCE}")
    settings = Settings(machine.config, machine.state)
    one = identified(settings, instance_id)

    async def work():
        supervisor = Supervisor(settings, "owner_x")
        patient = asyncio.create_task(supervisor.adapter(one, 30))
        with pytest.raises(HeadwaterError) as refusal:
            await supervisor.adapter(one, 0.2)
        assert (refusal.value.code, refusal.value.stage) == ("timeout", "readiness")
        assert "start_auth" in (await patient).hooks
        assert len(programs(machine)) == 1
        await supervisor.stop_all()

    asyncio.run(work())


@pytest.mark.clause("CLI-807")
def test_one_that_fails_keeps_no_other_from_serving(machine, acme):
    machine.instance("a", acme.endpoint, code="raise SystemExit(3)")
    machine.instance("b", acme.endpoint)
    error = refused(machine, "a")
    assert (error.code, error.stage, error.next_action) == ("unavailable", "readiness", "check_configuration")
    assert signed_in(machine, "b").account.id == "ada"


FAILING = {
    "exits": ("import sys; print('it has no key', file=sys.stderr); sys.exit(3)", "exited_before_handshake"),
    "is killed": ("import os; os.kill(os.getpid(), 11)", "exited_before_handshake"),
    "has other hooks": (SOURCE + "\nAcmeTickets.quote = AcmeTickets.list_groups\n", "handshake_mismatch"),
    "is no integration": ("x = 1", "exited_before_handshake"),
    "greets by nonsense": (
        f"import os, threading\n{NONSENSE}\nthreading.Event().wait()",
        "handshake_mismatch",
    ),
}


@pytest.mark.clause("CLI-818", "CLI-821", "CLI-822")
@pytest.mark.parametrize("how", FAILING)
def test_why_a_start_failed_is_told(how, machine, acme):
    """The reason, the exit or the signal, and a log that only its owner can read."""
    code, reason = FAILING[how]
    machine.instance("a", acme.endpoint, code=code)
    error = refused(machine)
    seen = machine.status("a")
    assert error.code == ("readiness_mismatch" if reason == "handshake_mismatch" else "unavailable")
    assert (seen["state"], seen["failure"], seen["start_failure"]) == ("failed", error.code, reason)
    log = Path(seen["start_log"])
    assert log == machine.state / "start-logs" / "acme_tickets.a.log"
    assert log.stat().st_mode & 0o777 == 0o600
    if how == "exits":
        assert seen["start_exit_code"] == 3
        assert "it has no key" in log.read_text()
    if how == "is killed":
        assert seen["start_signal"] == 11


def test_a_log_that_cannot_be_kept_costs_no_start(machine, acme):
    """Nothing leads it elsewhere either."""
    machine.instance("a", acme.endpoint)
    (machine.state / "start-logs").mkdir(mode=0o700)
    (machine.state / "start-logs" / "acme_tickets.a.log").symlink_to(machine.folder / "elsewhere")
    assert signed_in(machine).account.id == "ada"
    assert not (machine.folder / "elsewhere").exists()


def test_a_folder_that_is_gone_is_told(machine, acme):
    machine.instance("a", acme.endpoint)
    machine.start()
    (machine.folder / "a" / "integration.py").unlink()
    assert refused(machine).code == "unavailable"
    assert machine.status("a")["start_failure"] == "admission"


@pytest.mark.clause("CLI-822", "CLI-823")
def test_the_log_of_a_start_is_bounded_and_ends_with_it(machine, acme):
    """Its end, 64 KiB; what is written once a credential may be known is kept nowhere."""
    noisy = "import sys\nsys.stderr.write('x' * 200_000 + 'the end of it')\n" + SOURCE.replace(
        'if method == "token":', 'print(fields, flush=True)\n        if method == "token":'
    )
    machine.instance("a", acme.endpoint, code=noisy)
    signed_in(machine)
    log = machine.state / "start-logs" / "acme_tickets.a.log"
    text = log.read_text()
    assert len(text) <= 65_536
    assert text.endswith("the end of it")
    acme.tokens["sentinel-token"] = "ada"
    signed_in(machine, token="sentinel-token")
    machine.type("setup", "owner-stop")
    kept = [path for path in machine.folder.rglob("*") if path.is_file() and b"sentinel" in path.read_bytes()]
    assert kept == []


@pytest.mark.clause("CLI-809", "CLI-810")
@pytest.mark.parametrize("which", ["expected-revision", "host-incarnation", "child-incarnation"])
def test_another_incarnation_is_not_stopped(which, machine, acme):
    """All three coordinates count, and nothing is signalled where one differs."""
    machine.instance("a", acme.endpoint)
    signed_in(machine)
    before = programs(machine)
    failure = machine.type(*stopped(machine, **{which: "of-another"}), status=1)
    assert (failure["code"], failure["stage"]) == ("incarnation_mismatch", "stop")
    assert programs(machine) == before
    assert machine.status("a")["state"] == "ready"


@pytest.mark.clause("CLI-813", "CLI-814")
def test_one_that_was_stopped_stays_so_until_it_is_used(machine, acme):
    """Through another owner and a changed configuration; then it is started once."""
    machine.instance("a", acme.endpoint)
    signed_in(machine)
    assert machine.type(*stopped(machine))["observation"]["state"] == "suppressed"
    assert programs(machine) == []
    machine.type("setup", "owner-stop")
    machine.start()
    machine.config.write_text(machine.config.read_text() + "\n[connectors.git.instances.here]\n")
    assert machine.status("a")["state"] == "suppressed"
    assert signed_in(machine).account.id == "ada"
    assert machine.status("a")["state"] == "ready"


@pytest.mark.clause("CLI-812")
def test_a_program_that_does_not_want_to_end_is_ended(machine, acme):
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SOURCE
    machine.instance("a", acme.endpoint, code=stubborn)
    machine.instance("b", acme.endpoint)
    signed_in(machine)
    signed_in(machine, "b")
    machine.type(*stopped(machine))
    assert len(programs(machine)) == 1
    assert machine.status("b")["state"] == "ready"


@pytest.mark.clause("CLI-815")
def test_a_program_that_dies_is_not_started_by_itself(machine, acme):
    """It is seen as failed; the next one who needs it gets a new one."""
    machine.instance("a", acme.endpoint)
    signed_in(machine)
    (pid,) = programs(machine)
    os.kill(pid, signal.SIGKILL)
    until(lambda: machine.status("a")["state"] == "failed")
    assert programs(machine) == []
    assert signed_in(machine).account.id == "ada"
    assert machine.status("a")["state"] == "ready"


@pytest.mark.clause("CLI-804", "CLI-830")
def test_a_changed_configuration_replaces_the_program(machine, acme):
    machine.instance("a", acme.endpoint)
    signed_in(machine)
    before = machine.status("a")
    machine.config.write_text(machine.config.read_text() + 'description = "mine"\nprofile = "token"\n')
    signed_in(machine)
    after = machine.status("a")
    assert after["configuration_revision"] != before["configuration_revision"]
    assert after["child_incarnation"] != before["child_incarnation"]
    assert len(programs(machine)) == 1


@pytest.mark.clause("CLI-826")
def test_an_instance_without_code_is_ready_or_suppressed(machine):
    """The owner itself is what serves it."""
    machine.config.write_text(machine.config.read_text() + "\n[connectors.git.instances.here]\n")
    machine.start()

    def status():
        return machine.type("instances", "status", "--connector", "git", "--instance", "here")["observation"]

    seen = status()
    assert (seen["state"], seen["child_incarnation"]) == ("ready", seen["host_incarnation"])
    words = ["--expected-revision", seen["configuration_revision"], "--host-incarnation", seen["host_incarnation"]]
    words += ["--child-incarnation", seen["child_incarnation"], "--connector", "git", "--instance", "here"]
    assert machine.type("instances", "stop", *words)["observation"]["state"] == "suppressed"
    assert status()["state"] == "suppressed"


@pytest.mark.clause("CLI-808")
def test_an_owner_that_dies_fails_those_who_wait(machine, acme):
    """Its programs die with it; nobody waits for ever, and the next one who asks starts anew."""
    machine.instance(
        "a",
        acme.endpoint,
        code=SOURCE.replace(
            "return Envelope(fields", "import time; time.sleep(60)\n            return Envelope(fields"
        ),
    )
    machine.start()

    async def work():
        asking = asyncio.create_task(machine.signs_in("acme_tickets.a").start(METHODS["token"], {"token": Secret("x")}))
        while machine.status("a")["state"] != "ready":
            await asyncio.sleep(0.05)
        os.kill(machine.pid, signal.SIGKILL)
        await asking

    with pytest.raises(HeadwaterError) as refusal:
        asyncio.run(work())
    assert refusal.value.code == "outcome_unknown"
    until(lambda: programs(machine) == [])
