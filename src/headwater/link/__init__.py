"""Sockets between programs of one person on one machine.

`unix` serves and asks: one line of JSON each way, over a Unix socket that only its owner may use.
"""
