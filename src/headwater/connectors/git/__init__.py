"""Commits and refs of a git repository."""
