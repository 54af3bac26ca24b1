"""The personal server: the owner's own door to what this Headwater keeps, on this machine alone.

A face like the command line: it translates requests into calls of the host, and results into JSON.
"""
