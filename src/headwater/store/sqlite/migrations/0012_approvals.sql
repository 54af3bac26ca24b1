-- Who signs approvals of an owner. `keys` is JSON: an id, a public half, a state, and where in custody the private half
-- is.
CREATE TABLE approval_issuers (
    owner INTEGER PRIMARY KEY,
    issuer_id TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    keys TEXT NOT NULL
) STRICT;

-- The latest time that an approval was given or looked at: the clock is not believed before it.
CREATE TABLE approval_clocks (
    owner INTEGER PRIMARY KEY,
    floor_ms INTEGER NOT NULL
) STRICT;

-- Which writes of an instance may be approved. `policy` is JSON; its revision stands beside it to be compared.
CREATE TABLE approval_policies (
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    policy TEXT NOT NULL,
    PRIMARY KEY (owner, instance_id)
) STRICT, WITHOUT ROWID;

-- Approvals that were spent. They are never forgotten.
CREATE TABLE approval_redemptions (
    issuer TEXT NOT NULL,
    reference TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    PRIMARY KEY (issuer, reference)
) STRICT, WITHOUT ROWID;

-- Writes that were begun, a row an attempt: written before it is sent, and once more when it is known what came of it.
-- `key` digests what makes a write the same one when it is asked again; `result` is kept for as long as that counts.
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    attempt_id TEXT NOT NULL UNIQUE,
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    connection TEXT NOT NULL,
    operation TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    issuer TEXT NOT NULL,
    reference TEXT NOT NULL,
    request_id TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('prepared', 'dispatching', 'aborted', 'completed', 'failed', 'indeterminate')),
    key TEXT,
    classification TEXT NOT NULL CHECK (classification IN ('not_attempted', 'refused', 'applied', 'unknown')),
    cause TEXT,
    failure TEXT,
    result BLOB,
    prepared_at_ms INTEGER NOT NULL,
    settled_at_ms INTEGER
) STRICT;

CREATE UNIQUE INDEX attempts_by_key ON attempts (owner, instance_id, key) WHERE key IS NOT NULL;
CREATE INDEX attempts_open ON attempts (owner, instance_id) WHERE state IN ('prepared', 'dispatching');
