"""What some tests need of the machine. In CI nothing is skipped: what is missing there fails."""

import os
import shutil

import pytest

from headwater.process.browser import find_browser

browser = pytest.mark.skipif(
    find_browser() is None and "CI" not in os.environ, reason="needs Chromium: run scripts/test as root, or install it"
)

node = pytest.mark.skipif(
    shutil.which("npm") is None and "CI" not in os.environ, reason="needs Node: run scripts/test as root, or install it"
)
