"""The asset of a release: what is no gzip tar of the files that the index names is refused, in bounded memory."""

import json
import random
import tarfile
import tracemalloc
from collections.abc import Mapping
from gzip import compress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases.making import FILES, INVALID, MISMATCH, TOP, Person, index_of, member, packed, tar

from headwater import limits
from headwater.errors import HeadwaterError
from headwater.operate.release_archive import check_asset, unpacked
from headwater.operate.release_index import Index, read_release

MIB = 1024 * 1024
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def index(files: Mapping[str, bytes], asset: bytes) -> Index:
    return read_release(json.dumps(index_of(files, asset)).encode(), "0.3.0").index


def read(files: Mapping[str, bytes], asset: bytes) -> dict[str, bytes]:
    """Return the files of an asset that is held to an index of these files."""
    return {file.path: b"".join(pieces) for file, pieces in unpacked(asset, index(files, asset))}


def told(files: Mapping[str, bytes], asset: bytes) -> tuple[str, object]:
    with pytest.raises(HeadwaterError) as caught:
        check_asset(asset, index(files, asset))
    return caught.value.code, caught.value.data.get("file")


@pytest.mark.clause("CLI-513")
def test_an_asset_that_is_not_the_one_named_is_told_by_its_name(person: Person):
    asset = bytearray(packed(FILES))
    asset[len(asset) // 2] ^= 1
    person.publish(archive=packed(FILES))
    (person.source / "0.3.0" / "definitions.tar.gz").write_bytes(asset)
    assert person.code() == MISMATCH
    assert person.refusal().data == {"file": "definitions.tar.gz"}


@pytest.mark.clause("CLI-514")
@pytest.mark.parametrize("content", [b"name = 'acmo'\n", b"name", b"name = 'acme'\n\n", b"", b"x" * 100_000])
def test_a_file_that_is_not_the_one_named_is_told_by_its_path(content, person: Person):
    altered = {**FILES, "acme/api.toml": content}
    person.publish(archive=packed(altered))
    assert person.code() == MISMATCH
    assert person.refusal().data == {"file": "acme/api.toml"}


FOLDER, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
HOSTILE = {
    "a surplus link": member("link", kind=LINK, linkname="/etc/passwd"),
    "a second top folder": member("", kind=FOLDER, name="other"),
    "a file of a second top folder": member("", name="other/x"),
    "a file beside the top folder": member("", name="x"),
    "a file in the place of the top folder": member(""),
    "a file that is not named": member("surplus"),
    "a file twice": member("empty.toml"),
    "a file above the top": member("../x"),
    "a file above it by way of a folder": member("acme/../../x"),
    "a file at the root": member("", name="/etc/x"),
    "a file by another way": member("./empty.toml"),
    "a file with an empty step": member("acme//api.toml"),
    "a folder above the top": member("../..", kind=FOLDER),
    "a folder at the root": member("", kind=FOLDER, name="/"),
    "a folder without a name": member("", kind=FOLDER, name="."),
    "a folder with bytes": member("folder", b"12345", kind=FOLDER),
    "a pax name above the top": member("x", pax_headers={"path": "../x"}),
    "a pax name that is empty": member("x", pax_headers={"path": ""}),
}
OTHER_KINDS = {
    "a symbolic link": {"kind": LINK, "linkname": "acme/api.toml"},
    "a hard link": {"kind": HARD, "linkname": f"{TOP}/acme/api.toml"},
    "a character device": {"kind": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3},
    "a block device": {"kind": tarfile.BLKTYPE},
    "a pipe": {"kind": tarfile.FIFOTYPE},
    "a contiguous file": {"kind": tarfile.CONTTYPE},
    "a sparse file": {"kind": tarfile.GNUTYPE_SPARSE},
    "a sparse file of pax": {"pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}},
    "an unknown kind": {"kind": b"V"},
    "a pax size that is no number": {"pax_headers": {"size": "-0"}},
}


@pytest.mark.clause("CLI-515")
@pytest.mark.parametrize("further", HOSTILE.values(), ids=HOSTILE)
def test_an_entry_that_the_index_does_not_mean_is_refused(further, person: Person):
    person.publish(archive=packed(FILES, further))
    assert person.code() == INVALID


@pytest.mark.clause("CLI-515")
@pytest.mark.parametrize("said", OTHER_KINDS.values(), ids=OTHER_KINDS)
def test_an_entry_that_is_no_plain_file_does_not_stand_for_an_empty_one(said, person: Person):
    others = {path: content for path, content in FILES.items() if content}
    person.publish(archive=packed(others, member("empty.toml", **said)))
    assert person.code() == INVALID


@pytest.mark.clause("CLI-515")
@pytest.mark.parametrize("path", FILES)
def test_a_file_that_is_missing_is_refused(path, person: Person):
    person.publish(archive=packed({name: content for name, content in FILES.items() if name != path}))
    assert person.code() == INVALID


WHOLE = tar([member("", kind=FOLDER), *(member(*file) for file in FILES.items())])
BROKEN = {
    "nothing": b"",
    "no gzip": WHOLE,
    "no tar": compress(b"x" * 1_024),
    "a tar that ends in a header": compress(WHOLE[:700]),
    "a tar that ends in a file": compress(WHOLE[:1_030]),
    "a gzip file that is cut off": packed(FILES)[:-9],
    "a gzip file without its sum": packed(FILES)[:-8],
    "a gzip file with another sum": packed(FILES)[:-8] + b"12345678",
    "something after the gzip file": packed(FILES) + b"x",
    "a second gzip file": packed(FILES) + compress(b""),
    "something after the last entry": compress(WHOLE + b"x"),
    "an archive after the archive": compress(WHOLE + WHOLE),
    "a header that is not summed": compress(WHOLE[:148] + b"0000000\0" + WHOLE[156:]),
    "a name that is not UTF-8": compress(tar([member("\udcff")], tarfile.USTAR_FORMAT, errors="surrogateescape")),
    "one name for all": packed(FILES, pax_headers={"path": f"{TOP}/x"}),
    "one size for all": packed(FILES, pax_headers={"size": "0"}),
    "a large header": packed(FILES, pax_headers={"comment": "x" * 2 * MIB}),
}


@pytest.mark.clause("CLI-515")
@pytest.mark.parametrize("asset", BROKEN.values(), ids=BROKEN)
def test_what_is_no_gzip_tar_is_refused(asset):
    assert told(FILES, asset) == ("release_invalid", None)


def test_one_header_has_at_most_1_mib():
    """Where there are so many files that the archive may hold more beside them."""
    files = {f"{number:03}": b"" for number in range(200)}
    assert read(files, packed(files, pax_headers={"comment": "x" * (MIB - 100)})) == files
    assert told(files, packed(files, pax_headers={"comment": "x" * MIB})) == ("release_invalid", None)


def test_a_size_may_be_written_in_bytes_as_gnu_does():
    def sized(size: bytes) -> bytes:
        block = WHOLE[512:636] + size + WHOLE[648:1_024]
        total = sum(block) - sum(block[148:156]) + 8 * ord(" ")
        return compress(WHOLE[:512] + block[:148] + b"%06o\0 " % total + block[156:] + WHOLE[1_024:])

    assert read(FILES, sized(b"\x80" + len(FILES["acme/api.toml"]).to_bytes(11))) == FILES
    assert told(FILES, sized(b"\x80" + b"\xff" * 11)) == ("digest_mismatch", "acme/api.toml")
    assert told(FILES, sized(b"\xff" * 12)) == ("release_invalid", None)


def test_a_header_of_an_entry_that_does_not_come_is_refused():
    extended = tar([member("x", pax_headers={"comment": "x"})])
    assert told({}, compress(extended[:1_024] + bytes(1_024))) == ("release_invalid", None)


@pytest.mark.clause("CLI-515")
@pytest.mark.parametrize("form", FORMATS)
def test_what_usual_programs_write_is_read(form):
    long = "/".join(["folder"] * 30)
    files = {**FILES, **({} if form == tarfile.USTAR_FORMAT else {f"{long}/ä.toml": b"1"}), "b" * 90: b"1"}
    further = [member("acme", kind=FOLDER), member("unused", kind=FOLDER), member("old/", kind=tarfile.AREGTYPE)]
    headers = {"pax_headers": {"comment": "0123456789abcdef"}} if form == tarfile.PAX_FORMAT else {}
    assert read(files, compress(tar([*further, *(member(*file) for file in files.items())], form, **headers))) == files


@pytest.mark.clause("CLI-515")
def test_an_archive_may_end_without_its_end_mark_and_be_padded():
    for end in (b"", bytes(512), bytes(20_480)):
        bare = WHOLE[: len(WHOLE.rstrip(b"\0")) // 512 * 512 + 512]
        assert read(FILES, compress(bare + end)) == FILES


def padded(left: int) -> bytes:
    """Return an asset of one file of 1,000 bytes which inflates to so many bytes more than its format allows."""
    room = 1_024 + limits.RELEASE_FILE_ROOM_BYTES + limits.RELEASE_ROOM_BYTES
    whole = tar([member("a", b"x" * 1_000)])
    return compress(whole + bytes(room + left - len(whole)), 1)


@pytest.mark.clause("CLI-516")
def test_an_asset_inflates_to_its_files_and_the_room_for_their_headers_and_no_further():
    files = {"a": b"x" * 1_000}
    assert read(files, padded(0)) == files
    assert told(files, padded(1)) == ("release_invalid", None)


@pytest.mark.clause("CLI-516")
@pytest.mark.parametrize("bomb", [bytes(300 * MIB), tar([member("x", b"0" * 300 * MIB)])], ids=["zeros", "file"])
def test_a_bomb_is_refused_in_little_memory(bomb):
    asset = compress(bomb, 1)
    del bomb
    tracemalloc.start()
    try:
        assert told(FILES, asset) == ("release_invalid", None)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_a_file_is_read_in_pieces():
    """A file of 64 MiB takes no more memory than a small one."""
    files = {"large": bytes(64 * MIB)}
    asset = packed(files)
    named = index(files, asset)
    del files
    tracemalloc.start()
    try:
        check_asset(asset, named)
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()


names = st.text("aZ.-_ äß漢", min_size=1, max_size=60).filter(lambda text: text not in (".", ".."))
paths = st.lists(names, min_size=1, max_size=6).map("/".join)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(paths, st.binary(max_size=1_100), max_size=5), st.sampled_from(FORMATS[1:]))
def test_whatever_the_standard_library_packs_is_read_back(files, form):
    flat = {path: content for path, content in files.items() if not any(one.startswith(f"{path}/") for one in files)}
    apart = {path.casefold(): path for path in flat}
    files = {path: flat[path] for path in apart.values()}
    assert read(files, compress(tar((member(*file) for file in files.items()), form), 1)) == files


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_a_damaged_archive_is_read_right_or_refused(seed):
    """Whatever a few bytes of the archive become: the same files, or a refusal."""
    chance = random.Random(seed)
    damaged = bytearray(WHOLE)
    for _ in range(chance.randint(1, 4)):
        damaged[chance.randrange(len(damaged))] = chance.choice([0, 0x80, 0xFF, *b"0157xgL/.", chance.randrange(256)])
    try:
        assert read(FILES, compress(bytes(damaged), 1)) == FILES
    except HeadwaterError as error:
        assert error.code in ("release_invalid", "digest_mismatch")  # noqa: PT017
