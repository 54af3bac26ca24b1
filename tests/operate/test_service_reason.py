"""What a provider says of its refusal is told only where no rule speaks against it."""

import json
import string
import time
import unicodedata
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import limits
from headwater.operate.service_reason import admitted, reason_in, strings_of

FORMATS = """AD 600-605 61C 6DD 70F 890-891 8E2 180E 200B-200F 202A-202E 2060-2064 2066-206F FEFF FFF9-FFFB 110BD 110CD
13430-1343F 1BCA0-1BCA3 1D173-1D17A E0000-E007F"""
CARRIERS = "34F 115F-1160 3164 FFA0 FE00-FE0F E0100-E01EF"
BLANKS = "9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"
MARKERS = """authorization|bearer|basic |password|passwd|secret|cookie|api_key|apikey|api-key|private_key|private key|
-----begin|token=|token:|access_token|refresh_token|id_token|client_assertion|signature=|sig=|session=""".replace(
    "\n", ""
).split("|")


def ranges(text: str) -> set[int]:
    """Read a table of code points as the contract writes it."""
    found: set[int] = set()
    for piece in text.split():
        first, _, last = piece.partition("-")
        found.update(range(int(first, 16), int(last or first, 16) + 1))
    return found


@pytest.mark.clause("CLI-1102")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"message":"a"}', "a"),
        (b'{"error_description":"b"}', "b"),
        (b'{"error":"c"}', "c"),
        (b' {"error":"c","error_description":"b","message":"a"}\n', "a"),
        (b'{"error":"c","error_description":"b"}', "b"),
        (b'{"message":5,"error":"e"}', "e"),
        (b'{"message":null,"error_description":["b"],"error":"e"}', "e"),
        (b'{"message":{"error":"x"},"error":false}', None),
        (b'{"error":{"message":"x"}}', None),
        (b'{"Message":"a","detail":"b","errors":["c"],"title":"d"}', None),
        (b'{"message":["a"]}', None),
        (b'["a"]', None),
        (b'[{"message":"a"}]', None),
        (b'"a"', None),
        (b"null", None),
        (b"", None),
        (b"missing scope read", None),
        (b"<p>missing scope read", None),
        (b'{"message":"a"', None),
        (b'{"message":"a"} and more', None),
        (b'{"message":"a","v":NaN}', None),
        (b'\xef\xbb\xbf{"message":"a"}', None),
        (b'{"message":"a\xff"}', None),
        (b'{"message":"a","other":"\xff"}', None),
        (b'{"message":"\\ud800"}', None),
        ('{"message":"a"}'.encode("utf-16"), None),
        (b'{"message":"a","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
        (b'{"message":"a","far":1e999,"long":' + b"9" * 5_000 + b"}", "a"),
        (b'{"message":"\\u006dissing \\"scope\\""}', 'missing "scope"'),
        (b'{"message":"","error":"e"}', ""),
    ],
)
def test_the_reason_is_the_first_of_three_members_of_an_object(body: bytes, reason: str | None) -> None:
    """Nothing else of an answer is read: no nested member, no list, no other name, no text."""
    assert reason_in(body) == reason


@pytest.mark.clause("CLI-1103")
@pytest.mark.parametrize(
    ("reason", "told"),
    [(" a \n b ", "a b"), ("a\r\n\t\v\f b", "a b"), ("a b", "a b"), ("  ", None), ("", None), ("\n", None)],
)
def test_blanks_are_folded_and_trimmed(reason: str, told: str | None) -> None:
    """And what is nothing but blanks is no reason."""
    assert admitted(reason, []) == told


@pytest.mark.clause("CLI-1103", "CLI-1104")
def test_blanks_are_those_of_unicode() -> None:
    """The separators U+001C to U+001F, which Python splits at as well, are controls."""
    python = {code for code in range(0x110000) if chr(code).isspace()}
    assert python - ranges(BLANKS) == {0x1C, 0x1D, 0x1E, 0x1F}
    for code in ranges(BLANKS):
        assert admitted(f"{chr(code)}a{chr(code) * 2}b", []) == "a b", hex(code)


@pytest.mark.clause("CLI-1104")
def test_characters_that_show_as_nothing_withhold_a_reason() -> None:
    """Each listed one, and no other of all the characters there are."""
    controls = {code for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc"}
    unseen = (controls - ranges(BLANKS)) | ranges(FORMATS) | ranges(CARRIERS)
    halves, addresses = set(range(0xD800, 0xE000)), {0x40, 0xFF20, 0xFE6B}
    withheld: set[int] = set()
    for row in range(0, 0x110000, 64):
        codes = range(row, row + 64)
        if admitted("no " + "\n".join(map(chr, codes)), []) is None:
            withheld.update(code for code in codes if admitted(f"no {chr(code)}", []) is None)
    assert withheld == unseen | halves | addresses


@pytest.mark.clause("CLI-1104", "CLI-1105")
@pytest.mark.parametrize("character", ["\x00", "\u200b", "\u202e", "\ufe0f", "\U000e0041", "@", "\uff20", "\ufe6b"])
def test_what_is_looked_at_is_the_start_of_a_reason(character: str) -> None:
    """A character that ends at 4096 bytes is seen; one that goes beyond is not."""
    size = len(character.encode())
    fill = "no " * 2_000
    at = limits.REASON_LOOKED_AT_BYTES - size
    assert admitted(fill[:at] + character + fill, []) is None
    assert admitted(fill[: at + 1] + character + fill, []) is not None


def test_what_is_looked_at_is_counted_after_blanks_were_folded() -> None:
    """What was pushed out of sight by blanks is seen."""
    assert admitted("a" + " " * 10_000 + "@", []) is None


@pytest.mark.clause("CLI-1105")
@pytest.mark.parametrize("reason", ["user a@b.c unknown", "a \uff20 b", "a\ufe6bb", "@"])
def test_an_address_withholds_the_whole_reason(reason: str) -> None:
    """It is not masked."""
    assert admitted(reason, []) is None


@pytest.mark.clause("CLI-1106")
@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_withholds_a_reason_in_any_case_of_letters(marker: str) -> None:
    """Anywhere in it, also inside a word."""
    for text in (marker, marker.upper(), marker.title(), marker.swapcase()):
        assert admitted(f"the {text}x", []) is None
        assert admitted(f"a{text}x", []) is None


def test_there_are_two_and_twenty_markers() -> None:
    """As the contract lists them."""
    assert len(set(MARKERS)) == 22


@pytest.mark.clause("CLI-1106")
@pytest.mark.parametrize(
    "reason",
    [
        "basics",
        "use basic",
        "basic\u00e9 x",
        "a token is missing",
        "signature is missing",
        "sessions",
        "api key",
        "bear",
    ],
)
def test_what_is_only_like_a_marker_is_told(reason: str) -> None:
    """A marker counts as it is written, with its blank or its sign."""
    assert admitted(reason, []) == reason


def test_a_marker_is_compared_by_ascii_alone() -> None:
    """The Kelvin sign is no K, though it folds to one."""
    assert admitted("coo\u212aie", []) == "coo\u212aie"


@pytest.mark.clause("CLI-1107")
@pytest.mark.parametrize(
    ("run", "told"),
    [
        ("crm.objects.contacts.read", True),
        ("f81d4fae-7dec-11d0-a765-00a0c91e6bf6", False),
        ("a" * 31, True),
        ("a" * 32, False),
        ("-_+/=.~" * 5, False),
        ("a" * 18 + "\u00e9" + "a" * 18, True),
        ("a" * 16 + "," + "a" * 16, True),
        ("a" * 16 + "~" + "a" * 16, False),
        ("a" * 31 + "\uff11", False),  # a digit all the same, and in a long word
        ("/users/me/mailfolders/", True),
    ],
)
def test_a_long_run_of_what_tokens_are_made_of_withholds_a_reason(run: str, told: bool) -> None:
    """32 bytes are too long, whatever they are."""
    assert (admitted(f"no {run} no", []) is not None) is told


@pytest.mark.clause("CLI-1107")
def test_a_run_with_letters_and_digits_may_be_shorter() -> None:
    """From 20 bytes on; its digit withholds the word that it is in from 16 bytes on."""
    assert admitted("no " + "a" * 14 + "1 no", []) is not None
    for size in (16, 19, 20, 31):
        assert admitted("no " + "a" * (size - 1) + "1 no", []) is None
        assert admitted("no 1" + "-" * (size - 2) + "a no", []) is None


@pytest.mark.clause("CLI-1108", "CLI-1113")
@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("abcdefghijklmno1", False),
        ("abcdefghijklmn1", True),
        ("1234567890123456", False),
        ("123456789012345", True),
        ("(abc;defg;hijkl;1)", False),
        ("\u00e9" * 7 + "1", True),
        ("\u00e9" * 8 + "1", False),  # bytes count, not characters
        ("AbCdEfGhIjKlMnOp", False),
        ("AbCdEfGhIjKlMnO", True),
        ("aBcD", True),
        ("abcdABCDabcdABCD", True),  # 3 changes in 16 letters
        ("abcABCDabcdABCDa", False),  # 4 in 16
        ("aBcDabcdefghijklm", True),  # 4 in 17: none more, and one letter more
        ("aB,,,,,,,,,,,,,,", False),
        ("\u043d\u0435\u0438\u0437\u0432\u0435\u0441\u0442\u043d\u044b\u0439", True),
        ("PermissionDenied", True),
        (",,,,,,,,,,,,,,,,", True),
        ("a" * 30, True),
    ],
)
def test_a_long_word_with_a_digit_or_in_mixed_case_withholds_a_reason(word: str, told: bool) -> None:
    """From 16 bytes on; a change of case counts from one letter to the next, whatever stands between."""
    assert (admitted(f"no {word} no", []) is not None) is told


@pytest.mark.clause("CLI-1109")
@pytest.mark.parametrize(
    ("secret", "reason", "told"),
    [
        ("hidden-treasure", "the hidden-treasure", False),
        ("hidden-treasure", "no treasure here", False),
        ("hidden-treasures", "the HIDDEN-T", False),
        ("hidden-treasures", "the hidden-", True),
        ("hiddentreasures", "h i d d e n t r", False),
        ("hiddentreasures", "h i d d e n t", True),
        ("hiddentreasures", "H.I.D.D.E.N.T.R", False),
        ("hidden treasures", "hid-den_treas", False),
        ("h-i-d-d-e-n-t-r", "hiddentr", False),
        ("treasure hidden", "%74%72%65%61%73%75%72%65", False),
        ("treasure hidden", "tr%65asure", False),
        ("treasure hidden", "tr%2Dea%2dsure", False),
        ("tr%65asure", "tr%65asure", False),
        ("!?!?!?!?!?!?", "so !?!?!?!?", False),
        ("!?!?!?!?!?!?", "so !?!?!?!", True),
        ("pin", "the PIN is wrong", False),
        ("pin", "a p-i-n", False),
        ("pin", "spinning", False),
        ("pi-n", "pin", False),
        ("pin", "pn", True),
        ("p?", "p?", False),
        ("", "anything", True),
        ("\u00e9\u00e9\u00e9\u00e9", "\u00e9\u00e9\u00e9\u00e9", False),
        ("\u00e9\u00e9\u00e9\u00e9", "\u00c9\u00c9\u00c9\u00c9", True),  # the case of ASCII letters alone
    ],
)
def test_a_piece_of_a_secret_withholds_a_reason(secret: str, reason: str, told: bool) -> None:
    """Eight bytes in any case, or eight letters and digits whatever is between; what is shorter counts whole."""
    assert (admitted(reason, [secret.encode()]) is not None) is told


@pytest.mark.clause("CLI-1109")
def test_each_secret_counts_and_none_with_another() -> None:
    """A piece does not reach from one secret into the next."""
    secrets = [b"aaaabbbb", b"ccccdddd"]
    assert admitted("x bbbbcccc", secrets) == "x bbbbcccc"
    assert admitted("x ccccdddd", secrets) is None
    assert admitted("x ccccdddd", iter(secrets)) is None


@pytest.mark.clause("CLI-1109")
def test_a_piece_beyond_what_is_told_withholds_a_reason_too() -> None:
    """The whole text is compared, not only what would be left of it."""
    far = "no " * 3_000
    assert admitted(far + "treasure", [b"hidden"]) is not None
    assert admitted(far + "treasure", [b"treasures"]) is None


TEXTS = st.lists(st.sampled_from([*"abAB1-%. é", "%61", "abababab"]), max_size=40).map("".join)


def oracle(reason: bytes, secret: bytes) -> bool:
    """Whether a reason holds a piece of a secret, by the words of the contract and in no hurry."""

    def bare(value: bytes) -> bytes:
        kept = string.ascii_lowercase + string.digits
        return bytes(code for code in value.lower() if chr(code) in kept)

    def holds(text: bytes, value: bytes) -> bool:
        if len(value) < 8:
            return len(value) > 0 and value in text
        return any(value[start : start + 8] in text for start in range(len(value) - 7))

    return any(
        holds(read.lower(), secret.lower()) or holds(bare(read), bare(secret))
        for read in (reason, unquote_to_bytes(reason))
    )


@pytest.mark.clause("CLI-1109")
@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_a_reason_is_withheld_for_secrets_exactly_where_it_holds_a_piece(reason: str, secrets: list[str]) -> None:
    """Compared with the plainest reading there is."""
    alone = admitted(reason, [])
    told = admitted(reason, [secret.encode() for secret in secrets])
    folded = " ".join(reason.split())
    held = any(oracle(folded.encode(), secret.encode()) for secret in secrets)
    assert told == (None if held else alone)


@pytest.mark.clause("CLI-1109")
@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=8, max_size=60),
    st.integers(0, 52),
    st.sampled_from(["plain", "upper", "quoted", "dashed"]),
    TEXTS,
)
def test_an_echo_of_a_secret_is_never_told(secret: str, start: int, manner: str, around: str) -> None:
    """However a provider writes it: as it is, in capitals, with escapes, or with dashes between."""
    piece = secret[min(start, len(secret) - 8) :][:8]
    echoes = {
        "plain": piece,
        "upper": "".join(letter.upper() if letter.isascii() else letter for letter in piece),
        "quoted": quote(piece, safe=""),
        "dashed": "-".join(piece),
    }
    if manner == "dashed" and not (piece.isascii() and piece.isalnum()):
        return
    assert admitted(f"{around}{echoes[manner]}{around}", [secret.encode()]) is None


@pytest.mark.clause("CLI-1111")
@pytest.mark.parametrize(
    ("reason", "size"),
    [
        ("no " * 85 + "a", 256),
        ("no " * 85 + "ab", 254),  # 257 bytes: the last word goes
        ("no " * 84 + "nono nono", 256),  # 261: what is left ends where a word does
        ("," * 256, 256),
        ("," * 257, None),
        ("," * 300 + " no", None),
        ("," * 256 + " no", 256),
        ("no " + "," * 300, 2),
        ("\u00e9" * 128, 256),
        ("\u00e9" * 129, None),
        ("\u00e9 " * 100, 254),  # 85 of three bytes, without the last blank
        ("\u20ac" * 85 + "," + " no", 256),
    ],
)
def test_a_long_reason_is_cut_back_to_its_last_whole_word(reason: str, size: int | None) -> None:
    """At most 256 bytes; none is told where not even its first word fits."""
    told = admitted(reason, [])
    assert (None if told is None else len(told.encode())) == size
    if told is not None:
        folded = " ".join(reason.split())
        assert folded == told or folded.startswith(f"{told} ")


@given(st.text(max_size=600), st.lists(st.binary(max_size=12), max_size=3))
def test_what_was_admitted_is_admitted_again(reason: str, secrets: list[bytes]) -> None:
    """Unchanged, so that each who holds secrets of its own can look once more."""
    told = admitted(reason, secrets)
    if told is not None:
        assert admitted(told, secrets) == told
        assert 0 < len(told.encode()) <= limits.REASON_BYTES
        assert told == " ".join(told.split())


@pytest.mark.parametrize(
    ("document", "strings"),
    [
        (b'{"a":"one","b":{"c":["two",3,null,true,{"d":"three"}]}}', [b"one", b"three", b"two"]),
        (b'{"a":"one","a":"two"}', [b"one", b"two"]),
        (b'"alone"', [b"alone"]),
        (b'{"a":"caf\\u00e9 \\"x\\""}', ['café "x"'.encode()]),
        (b'{"a":"\\ud800b"}', [b"\xed\xa0\x80b"]),
        (b'{"key":""}', [b'{"key":""}']),
        (b'{"pin":12345678}', [b'{"pin":12345678}']),
        (b"[]", [b"[]"]),
        (b"password=one", [b"password=one"]),
        (b"\xff\xfe", [b"\xff\xfe"]),
        (b'{"a":"one"', [b'{"a":"one"']),
        (b"", [b""]),
    ],
)
def test_the_strings_of_a_document_are_its_values(document: bytes, strings: list[bytes]) -> None:
    """However deep, and each of those that have one name; the document itself where there are none."""
    assert sorted(strings_of(document)) == strings


def test_a_document_that_is_too_deep_to_read_counts_whole() -> None:
    """Nothing of it is lost."""
    document = b"[" * 30_000 + b'"treasure"' + b"]" * 30_000
    assert strings_of(document) == [document]
    assert admitted("the treasure", strings_of(document)) is None


@pytest.mark.clause("CLI-1109")
def test_no_value_of_a_document_is_echoed() -> None:
    """From the document to the refusal."""
    document = json.dumps({"user": "someone-else", "keys": ["hiddentreasure"]}).encode()
    assert admitted("no hidden-trea for you", strings_of(document)) is None
    assert admitted("someone is not allowed", strings_of(document)) == "someone is not allowed"


def test_large_answers_and_large_secrets_take_their_time_and_no_more() -> None:
    """8 MiB of an answer and 64 KiB of secrets, of any length: time grows with them, not with their product."""
    secrets = [bytes([one, two]) * 4 for one in range(90) for two in range(90)]
    short = [bytes([one, two, 0])[:size] for one in range(128, 255) for two in range(64) for size in (2, 3)]
    body = json.dumps({"message": "zz " * (8 * limits.MIB // 3)}).encode()
    longest = "zz " * (limits.REASON_TAKEN_BYTES // 3)
    begun = time.monotonic()
    reason = reason_in(body)
    assert reason is not None
    assert admitted(reason, secrets) is None  # nobody reads so much: it is not looked through
    assert admitted(longest, [*secrets, *short]) is not None
    assert admitted("% " * 30_000, [*secrets, *short]) is None
    assert admitted(longest[:-20] + "Y5Y5Y5Y5", [*secrets, *short]) is None
    assert time.monotonic() - begun < 10
