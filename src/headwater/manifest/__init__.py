"""The manifest: what a connector says about itself, before it is trusted with a process.

Declaration       a connector manifest as read and checked: its streams, bindings and capabilities
Stream            one declared stream: its schema, its key, its times, its checkpoint parents
Binding           something the connector needs of the host, such as `network`
CheckpointGraph   which checkpoint covers which stream
Fault             one reason to refuse a manifest, with a JSON pointer to the place
Walk              how an operation answers page by page
Package           a connector folder's `connector.toml`: the command that runs it, and its options

`read` turns a JSON document into a `Declaration`, or into every reason to refuse it at once.
Nothing here does I/O.
"""
