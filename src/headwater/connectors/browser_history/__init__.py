"""Visits, pages and bookmarks of Chromium-family browsers and Firefox."""
