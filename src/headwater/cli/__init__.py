"""The command line: parse, call one `Host` method, print. One file a command group, imported when it is used."""
