"""WebDAV for the connectors that collect from it: caldav and carddav. This is no connector: it has no manifest.

xml           bodies that a server sends, read without trust
account       one account: its credentials, its requests, and where its collections are
changes       what changed in a collection since a token, or all that is in it
collecting    the walk that both connectors make
content       lines as iCalendar and vCard write them
"""
