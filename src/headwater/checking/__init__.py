"""Checking a connector: real runs of its real program under faults, without a store.

Pack      one way to try a connector: whole, resumed, narrowed, killed, slowly read, …
Bench     a connector that is ready to be tried; every run of a check goes over it
Trial     one run, and what was seen of it: records, cursors, lines, exit
Finding   what the trials show about one clause: pass, fail, or not applicable, with the evidence
Report    all findings of a check, and whether the connector conforms

The room joins the process and the in-memory ledger to collecting as `host.py` does for live runs. The evidence comes
from the very Session that live runs use.
"""

from headwater.checking.findings import Finding
from headwater.checking.report import Report, check

__all__ = ["Finding", "Report", "check"]
