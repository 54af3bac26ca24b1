"""What a child may reach: its bindings, enforced by the system.

`Confinement` says what one child may see and reach. `enclosing` puts a command inside it, by the strongest of the
ways that work on this machine:

bubblewrap   a view of the files made for the child, and namespaces of its own
landlock     rules on the files that are there; user namespaces, where they work, take the network and hide files
none         nothing holds the child, and `setup check` and each run say so

With the first two a seccomp filter keeps the child from sockets that lead past them. `inside.py` is the program that
takes the second way: it holds itself to the rules, and becomes the connector.
"""
