"""Which certificates an operator names for a provider, and what is not taken for a name of any."""

import os
from pathlib import Path

import pytest

from headwater import limits
from headwater.catalog.certificates import certificates
from headwater.errors import HeadwaterError

ONE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
TWO = ONE.replace("MIIB", "MIIC")


def refusal(**provider: object) -> str:
    with pytest.raises(HeadwaterError) as caught:
        certificates(provider)
    assert caught.value.code == "invalid_configuration"
    return str(caught.value)


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A file that is in order."""
    path = tmp_path / "ca.pem"
    path.write_text(TWO + ONE)
    path.chmod(0o644)
    return path


def test_nothing_named_stands_for_the_system() -> None:
    """Whatever else the table holds."""
    assert certificates({}) is None
    assert certificates({"client_id": "x"}) is None


def test_they_stand_inline_or_in_a_file(named: Path) -> None:
    """The file may be read by others."""
    assert certificates({"ca": ONE}) == ONE
    assert certificates({"ca_file": str(named)}) == ONE + TWO


@pytest.mark.parametrize(
    "text",
    [
        TWO + ONE,
        ONE + TWO + ONE,
        f"# Caf\u00e9\n{ONE}\n\nsubject=x\n{TWO}",
        (ONE + TWO).replace("\n", "\r\n"),
        (ONE + TWO).replace("MII", "M\n  II"),
    ],
)
def test_the_same_certificates_are_one_text(text: str) -> None:
    """In any order, once or twice, with anything between them."""
    assert certificates({"ca": text}) == ONE + TWO


def test_long_ones_are_broken_into_lines() -> None:
    """As a reader of PEM wants them."""
    (line,) = {len(line) for line in (certificates({"ca": ONE.replace("MIIB", "A" * 640)}) or "").splitlines()[1:-1]}
    assert line == 64


@pytest.mark.parametrize(
    "value", ["", "nothing", ONE[:-9], ONE.replace("CERTIFICATE", "PRIVATE KEY"), 1, [ONE], None, True]
)
def test_a_text_without_one_is_refused(value: object, tmp_path: Path) -> None:
    """A provider that would be believed by nothing is a mistake."""
    assert "holds no certificate" in refusal(ca=value)
    if isinstance(value, str):
        (tmp_path / "ca.pem").write_text(value)
        assert "holds no certificate" in refusal(ca_file=str(tmp_path / "ca.pem"))


def test_two_ways_at_once_are_refused(named: Path) -> None:
    """Which one counts is nobody's guess."""
    assert "both" in refusal(ca=ONE, ca_file=str(named))


@pytest.mark.parametrize("value", ["ca.pem", "~/ca.pem", "", "/ca\0.pem", 1, None])
def test_a_path_is_absolute(value: object) -> None:
    """Nothing is looked for where a command happens to stand."""
    assert "not an absolute path" in refusal(ca_file=value)


@pytest.mark.parametrize("way", ["gone", "folder", "linked", "written", "folder written", "large", "binary", "fifo"])
def test_a_file_that_others_could_change_is_refused(way: str, named: Path, tmp_path: Path) -> None:
    """Whoever can change it could listen to every credential. What it holds and where it is, is not repeated."""
    path = named
    match way:
        case "gone":
            named.unlink()
        case "folder":
            path = tmp_path
        case "linked":
            path = tmp_path / "link.pem"
            path.symlink_to(named)
        case "written":
            named.chmod(0o664)
        case "folder written":
            tmp_path.chmod(0o777)
        case "large":
            named.write_bytes(ONE.encode() + b" " * limits.CERTIFICATES_BYTES)
        case "binary":
            named.write_bytes(b"\xff" + ONE.encode())
        case "fifo":
            path = tmp_path / "fifo"
            os.mkfifo(path)
    said = refusal(ca_file=str(path))
    assert "you or root alone" in said
    assert str(tmp_path) not in said
