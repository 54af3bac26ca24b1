-- Accounts that were disconnected. What was collected of them stays, and counts as inactive until one is connected again.
CREATE TABLE disconnections (
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    connector TEXT NOT NULL,
    instance TEXT NOT NULL,
    connection TEXT NOT NULL,
    revocation TEXT NOT NULL CHECK (revocation IN ('done', 'failed', 'unsupported')),
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (owner, instance_id)
) STRICT, WITHOUT ROWID;
