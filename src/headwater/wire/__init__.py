"""The wire: what host and connector say to each other, letter for letter as the Collection Profile names it.

A message is one JSON object on one line that ends in LF (CP-100). `decode` reads a line into one of the
messages of `messages.py`, or says why the line is none; `encode` writes one. `Framer` finds the lines in
the bytes of a pipe. Nothing here does I/O or knows a run.
"""
