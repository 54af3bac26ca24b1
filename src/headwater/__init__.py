"""Headwater: a connector host that a person runs on a machine of their own."""
