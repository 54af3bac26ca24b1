"""Contacts from a CardDAV server."""
