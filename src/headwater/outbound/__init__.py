"""The one way to a provider over HTTP: bounded, over TLS, without redirects or anything ambient."""
