"""The bundled connectors, one folder each; each is a program of its own that imports the SDK and nothing else."""
