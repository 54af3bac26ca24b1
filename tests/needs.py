"""What some tests need of the machine. In CI nothing is skipped: what is missing there fails."""

import os
import shutil
import subprocess

import pytest

from headwater.process.browser import find_browser

browser = pytest.mark.skipif(
    find_browser() is None and "CI" not in os.environ, reason="needs Chromium: run scripts/test as root, or install it"
)

node = pytest.mark.skipif(
    shutil.which("npm") is None and "CI" not in os.environ, reason="needs Node: run scripts/test as root, or install it"
)

compiler = pytest.mark.skipif(
    shutil.which("cc") is None and "CI" not in os.environ,
    reason="needs cc: run scripts/test as root, or install it",
)

namespaces = pytest.mark.skipif(
    "CI" not in os.environ and subprocess.run(["unshare", "--map-root-user", "--mount", "true"]).returncode != 0,
    reason="needs user namespaces: run scripts/test as root, or allow them",
)
