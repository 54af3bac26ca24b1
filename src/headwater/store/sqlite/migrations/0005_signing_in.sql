-- Signing in. Times are milliseconds since 1970. A state is `claimed` while it is answered, and stays so once it is used
-- up; it is forgotten when it has expired.
CREATE TABLE auth_states (
    nonce TEXT PRIMARY KEY,
    expires_at_ms INTEGER NOT NULL,
    wrong INTEGER NOT NULL,
    claimed INTEGER NOT NULL
) STRICT;

CREATE INDEX auth_states_by_end ON auth_states (expires_at_ms);

-- Attempts to sign in, by what they are counted for: a digest, never a name.
CREATE TABLE auth_attempts (
    key BLOB NOT NULL,
    at_ms INTEGER NOT NULL,
    forget_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX auth_attempts_by_key ON auth_attempts (key, at_ms);
CREATE INDEX auth_attempts_by_end ON auth_attempts (forget_at_ms);

-- Exchanges of a refresh token, one for each generation of a credential, while they are not over. `sent` is written
-- before anything leaves; `version` is what custody keeps of the answer, until it is published.
CREATE TABLE refreshes (
    connection TEXT NOT NULL,
    generation INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('sent', 'stored', 'uncertain')),
    version TEXT,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (connection, generation),
    CHECK ((state = 'stored') = (version IS NOT NULL))
) STRICT, WITHOUT ROWID;
