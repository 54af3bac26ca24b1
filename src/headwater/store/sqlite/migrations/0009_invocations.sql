-- What was asked of providers, a row a request: written before the request leaves, and once more when it is over. It holds
-- no input and no answer. Times are milliseconds since 1970. `outcome` is `succeeded` or the code of a failure; a row
-- without one was cut off.
CREATE TABLE invocations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    connector TEXT NOT NULL,
    instance TEXT NOT NULL,
    connection TEXT NOT NULL,
    operation TEXT NOT NULL,
    revision TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('read', 'write')),
    dispatched_at_ms INTEGER NOT NULL,
    answered_at_ms INTEGER,
    outcome TEXT,
    CHECK ((answered_at_ms IS NULL) = (outcome IS NULL))
) STRICT;

CREATE INDEX invocations_by_instance ON invocations (owner, instance_id, number);
