"""The store: what is durable.

records       the latest version of each key, per stream
versions      every version there was, chained back by `prev`; a delete is a version without data
checkpoints   the committed cursor of each stream, per namespace
staged        cursors of a run that still goes on
runs          one row a run, with its verdict and facts
receipts      records that were refused, with their bytes
gaps          details known to be missing
blobs         bytes that records refer to, by SHA-256, in files

Adapters only: an adapter fills the ports of the verbs and decides nothing.
"""
