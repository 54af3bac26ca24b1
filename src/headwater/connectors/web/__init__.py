"""HTTP for the bundled connectors whose provider speaks it. This is no connector: it has no manifest."""
