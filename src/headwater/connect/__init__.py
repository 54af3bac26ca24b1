"""Connect: accounts, credentials in custody, sign-in flows, connections that stay alive. Decides, and does no I/O."""
