"""A provider for the tests of the service."""

from adapters.conftest import acme  # noqa: F401
