"""Calendars from a CalDAV server."""
