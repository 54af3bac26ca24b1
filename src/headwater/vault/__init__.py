"""Custody: where credentials are kept. Never in plain text, and never anywhere that was not chosen."""
