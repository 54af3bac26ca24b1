"""Writes: what changes something at a provider, only as it was approved, and at most once. Does no I/O.

Policy    which writes of an instance its owner lets be approved at all, for one selection of configuration and program
Subject   exactly one write: where, with which connection and which input, under which policy
Proof     the owner's signature under a subject, good for about five minutes and for one use
Guard     what has to be so at the provider before a write is sent, and what shows that it was done
Attempt   one write that was begun; durable before it is sent, and settled as not_attempted, refused, applied or unknown
"""
