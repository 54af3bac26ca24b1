"""A browser's profile before a browser opens it: what a connector, or an earlier browser, may have left there."""

import json
import os

import pytest

from headwater.errors import HeadwaterError
from headwater.process.profile import PORT_FILE, made, prepare

FORMS = {"autofill": {"profile_enabled": True, "other": 1}, "intl": {"accept_languages": "cy"}}


def preferences(profile):
    """Return the preferences of a profile."""
    return json.loads((profile / "Default" / "Preferences").read_text())


@pytest.fixture
def profile(tmp_path):
    """A profile that was prepared once."""
    prepare(made(tmp_path / "browsers" / "profile"))
    return tmp_path / "browsers" / "profile"


def test_only_its_owner_can_enter_a_profile(profile):
    """Its cookies are as good as the login."""
    assert profile.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (json.dumps(FORMS), {"other": 1}),
        (json.dumps({"autofill": "yes", "profile": 3}), {}),
        ("[1, 2]", {}),
        ("not json", {}),
        ("[" * 100_000, {}),
    ],
)
def test_forms_are_not_remembered_whatever_was_set_before(profile, before, kept):
    """Other preferences stay where they can be read."""
    (profile / "Default" / "Preferences").write_text(before)
    prepare(profile)
    after = preferences(profile)
    assert after["autofill"] == {"profile_enabled": False, "credit_card_enabled": False, **kept}
    assert (after["credentials_enable_service"], after["profile"]["password_manager_enabled"]) == (False, False)
    assert after.get("intl") == (FORMS["intl"] if kept else None)


def test_open_tabs_and_an_old_address_are_taken_away(profile):
    """Tabs hold what was sent in them, and the address leads to nobody, or to somebody else."""
    (profile / "Default" / "Sessions").unlink()
    (profile / "Default" / "Sessions").mkdir()
    (profile / "Default" / "Sessions" / "Tabs_1").write_text("code=123456")
    (profile / PORT_FILE).write_text("9\n/devtools/browser/old")
    prepare(profile)
    assert (profile / "Default" / "Sessions").is_file()
    assert not (profile / PORT_FILE).exists()


@pytest.mark.parametrize("place", ["Default", "Default/Preferences", "Default/Sessions", "SingletonLock", "a"])
def test_a_link_in_a_profile_leads_nowhere(profile, tmp_path, place):
    """A connector that has the folder cannot have files read or written for it elsewhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "Preferences").write_text('{"secret": 1}')
    target = outside / "Preferences" if place.endswith("Preferences") else outside
    if (profile / place).is_dir():
        (profile / place).rename(tmp_path / "old")
    (profile / place).unlink(missing_ok=True)
    (profile / place).symlink_to(target)
    prepare(profile)
    assert [path for path in profile.rglob("*") if path.is_symlink()] == []
    assert "secret" not in preferences(profile)
    assert (outside / "Preferences").read_text() == '{"secret": 1}'
    assert [path.name for path in outside.iterdir()] == ["Preferences"]


def test_a_pipe_in_a_profile_holds_nobody_up(profile):
    """Reading it would wait for ever."""
    (profile / "Default" / "Preferences").unlink()
    os.mkfifo(profile / "Default" / "Preferences")
    prepare(profile)
    assert preferences(profile)["autofill"]["profile_enabled"] is False


@pytest.mark.parametrize("use", [made, prepare])
def test_a_profile_that_cannot_be_written_refuses_the_binding(tmp_path, use):
    """And says so, without a traceback."""
    (tmp_path / "profile").write_text("a file")
    with pytest.raises(HeadwaterError) as caught:
        use(tmp_path / "profile" / "inner")
    assert caught.value.code == "binding_unavailable"
