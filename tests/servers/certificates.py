"""Certificates for servers of the tests, by an authority of their own."""

import subprocess
from pathlib import Path


def certify(place: Path) -> None:
    """Make an authority (`ca.pem`), and by it a certificate for 127.0.0.1 (`server.pem`, `server.key`)."""
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-x509"]
    ca = ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test CA"]
    leaf = [
        "-keyout",
        "server.key",
        "-out",
        "server.pem",
        "-subj",
        "/CN=127.0.0.1",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
    ]
    named = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    for words in ([*new, *ca], [*new, *leaf, *named]):
        subprocess.run(words, cwd=place, check=True, capture_output=True, timeout=60)
