"""Operate: what a provider can be asked, one request or a walk of pages, and what its answer means. Does no I/O."""
