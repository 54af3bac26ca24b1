"""Integrations: their manifests on this machine, and their code in child processes of their own."""
