"""Where adapters are joined to verbs: a file a subject, and nothing else chooses an adapter.

collecting    live runs of one instance, one after the other; `programs` are the words in which they are asked for
connecting    accounts: configuration, custody and provider, joined to what is decided about them
integrating   the common service of integrations: list, enable, refresh, configure, disconnect
configuring   what is configured: making it, listing it, describing it
readiness     what this machine has to stand on
cursors       the cursors of an instance, from outside a run
control       what other processes may ask of a live run
"""
