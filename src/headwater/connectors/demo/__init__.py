"""The connector of `headwater demo`, and the provider that it collects from."""
