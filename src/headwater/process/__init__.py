"""A child's life: spawn, lines, stop, death.

`Child` fills the `Guest` port of collecting. A child has a process group of its own, an environment of an
allow-list, and dies with its host. `Launch` starts a connector as one, in the confinement that its bindings make.
`browsing` gives a run its browser, another child, in a profile that its instance keeps.
"""
