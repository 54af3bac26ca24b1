"""The page about custody shows files that are read as it says."""

import os
import re
from pathlib import Path

from headwater.catalog.instances import Instances
from headwater.configuration.reading import parse
from headwater.vault.choosing import SealedFile, sealed_file

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "custody.md"


def test_the_files_of_the_page_are_read(tmp_path):
    socket, mounted, sealed = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    ours = f"owner_uid = {os.geteuid()}"
    assert parse(socket.replace("owner_uid = 1000", ours).encode()).secret_service_socket.name == "bus"
    custody = parse(mounted.replace("owner_uid = 1000", ours).encode()).custody
    assert (custody.binding, custody.directory) == ("mounted_secret", Path("/run/secrets/headwater"))
    place = tmp_path / "collect.toml"
    place.touch(mode=0o600)
    place.write_text(sealed)
    table = sealed_file(Instances(place).custody())
    folder = Path("/home/ada/.config/headwater")
    assert table == SealedFile(folder / "custody.sealed", Path("/media/key/headwater.key"))
