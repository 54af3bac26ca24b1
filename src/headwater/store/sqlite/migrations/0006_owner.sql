-- What the owner of the machine wants of an instance's adapter: one that was stopped stays so until it is used by name.
CREATE TABLE runtime_records (
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    suppressed INTEGER NOT NULL CHECK (suppressed IN (0, 1)),
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (owner, instance_id)
) STRICT, WITHOUT ROWID;

-- Every access token that was handed out, and how: never the token.
CREATE TABLE access_token_issues (
    issue TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    connection TEXT NOT NULL,
    delivery TEXT NOT NULL CHECK (delivery IN ('metadata_only', 'revealed')),
    refreshed INTEGER NOT NULL CHECK (refreshed IN (0, 1)),
    at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
