"""The catalog: what can be run on this machine.

ConnectorFolder   a connector on disk: its manifest, its connector.toml and where they lie
Instances         the instances that a person set up, remembered in `collect.toml`
"""
