"""Collecting: one run of one connector, from a scope to committed checkpoints.

RunPlan       what one run may collect, in whose namespace, from which cursors
Session       the run as a state machine without I/O: a line in, an effect out
Effect        what a line asks of the host: keep a record, stage a cursor, ask the owner, end
Gate          what admits one stream's records: scope, key identity, schema
Verdict       how a run ended, and the one cause that decided it
Decision      which staged checkpoints commit, and why each other one is withheld
Run           the service that drives a child process, a session and the store

The decision modules are plain functions and frozen values. `runs.py` is the only service; it talks to the
ports in `ports.py` and to nothing else. Live runs, `connectors check` and the tests drive the same Session.
"""
