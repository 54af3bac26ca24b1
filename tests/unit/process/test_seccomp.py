"""The seccomp filter, run by a small machine of our own: what it says on processors that are not here, too."""

import struct

import pytest

from headwater.process.confinement.seccomp import seccomp_filter

X86, ARM, RISCV = 0xC000003E, 0xC00000B7, 0xC00000F3
MACHINES = {"x86_64": (X86, 41, 44, 46, 307, 250), "aarch64": (ARM, 198, 206, 211, 269, 219)}
MACHINES["riscv64"] = (RISCV, *MACHINES["aarch64"][1:])
UNIX, INET, INET6, NETLINK, VSOCK = 1, 2, 10, 16, 40
STREAM, DATAGRAM, CLOSE_ON_EXEC, MPTCP = 1, 2, 0x80000, 262
FAST_OPEN = 0x20000000

each_machine = pytest.mark.parametrize("machine", MACHINES)


def allows(program: bytes, architecture: int, number: int, *arguments: int) -> bool:
    """Run a filter on a system call, as the kernel would (linux/filter.h)."""
    call = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    lines = list(struct.iter_unpack("=HBBI", program))
    place = value = 0
    while True:
        code, yes, no, operand = lines[place]
        place += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", call, operand)
            case 0x54:
                value &= operand
            case 0x06:
                return operand == 0x7FFF0000
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
                place += yes if holds else no


@each_machine
@pytest.mark.parametrize(
    ("sockets", "families"), [("all", {INET, INET6, NETLINK}), ("local", {UNIX, INET, INET6, NETLINK}), ("none", set())]
)
def test_a_family_is_allowed_or_not(machine, sockets, families):
    """Families that lead past the boundary never are, but to a browser."""
    architecture, socket, *_ = MACHINES[machine]
    program = seccomp_filter(sockets, machine)
    assert {each for each in range(64) if allows(program, architecture, socket, each, STREAM)} == families


@each_machine
def test_where_landlock_is_relied_on_there_is_tcp_alone(machine):
    """No datagram, no raw socket, no other protocol of streams, and no connection by sending."""
    architecture, socket, sendto, sendmsg, sendmmsg, _ = MACHINES[machine]
    program = seccomp_filter("tcp", machine)
    assert allows(program, architecture, socket, INET, STREAM | CLOSE_ON_EXEC, 6)
    assert allows(program, architecture, socket, INET6, STREAM, 0)
    assert allows(program, architecture, socket, NETLINK, 3)
    for family, kind, protocol in [(INET, DATAGRAM, 0), (INET, 3, 1), (INET, STREAM, MPTCP), (INET6, STREAM, 132)]:
        assert not allows(program, architecture, socket, family, kind, protocol)
    for family in (UNIX, VSOCK):
        assert not allows(program, architecture, socket, family, STREAM)
    assert allows(program, architecture, sendto, 3, 0, 9, 0)
    assert not allows(program, architecture, sendto, 3, 0, 9, FAST_OPEN)
    assert not allows(program, architecture, sendmsg, 3, 0, FAST_OPEN | 1)
    assert not allows(program, architecture, sendmmsg, 3, 0, 1, FAST_OPEN)


@each_machine
@pytest.mark.parametrize("sockets", ["all", "local", "tcp", "none"])
def test_rings_and_keyrings_and_other_architectures_are_refused(machine, sockets):
    """What would go around the filter is refused by it; all else is allowed."""
    architecture, *_, keyctl = MACHINES[machine]
    program = seccomp_filter(sockets, machine)
    assert not allows(program, architecture, 425)
    assert not allows(program, architecture, keyctl)
    assert not allows(program, 0x40000003, 1)
    assert not allows(program, architecture, 0x40000000 | 41)
    assert allows(program, architecture, 0)
    assert allows(program, architecture, 63)


def test_a_processor_that_it_is_not_written_for_has_no_filter():
    """A wrong number would hold the wrong call."""
    assert seccomp_filter("none", "s390x") is None
