-- Instances, and the streams that they have.
CREATE TABLE instances (
    id INTEGER PRIMARY KEY,
    connector_id TEXT NOT NULL,
    connector TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (connector, name)
);

CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL REFERENCES instances (id),
    name TEXT NOT NULL,
    semantics TEXT NOT NULL,
    time_field TEXT,
    live INTEGER NOT NULL DEFAULT 0,
    updated_at TEXT,
    UNIQUE (instance, name)
);

-- Records. The text of a record stands once, in its version; `records` says which version is current.
-- Small rows without a rowid keep the random order of keys in one small tree.
CREATE TABLE records (
    stream INTEGER NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) WITHOUT ROWID;

-- `prev` chains a key's versions, which is cheaper to write than an index on (stream, key). Both indexes
-- hold versions of the past too: a reader skips those that `records` does not name.
CREATE TABLE versions (
    seq INTEGER PRIMARY KEY,
    prev INTEGER,
    stream INTEGER NOT NULL,
    run INTEGER NOT NULL,
    time INTEGER,
    key TEXT NOT NULL,
    emitted_at TEXT NOT NULL,
    data TEXT
);

CREATE INDEX versions_of_stream ON versions (stream);
CREATE INDEX versions_by_time ON versions (stream, time) WHERE time IS NOT NULL;

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    instance INTEGER NOT NULL REFERENCES instances (id),
    namespace TEXT,
    mode TEXT NOT NULL,
    status TEXT NOT NULL,
    cause TEXT,
    message TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    connector_ended INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    graph TEXT NOT NULL,
    facts TEXT,
    stderr_tail TEXT
);

CREATE INDEX runs_of_instance ON runs (instance, id);

CREATE TABLE run_streams (
    run INTEGER NOT NULL REFERENCES runs (id),
    stream TEXT NOT NULL,
    accepted INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    gaps INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, stream)
) WITHOUT ROWID;

-- Cursors. `staged` holds those of running runs only; they move to `checkpoints` when their run ends well.
CREATE TABLE staged (
    run INTEGER NOT NULL REFERENCES runs (id),
    stream TEXT NOT NULL,
    cursor TEXT NOT NULL,
    PRIMARY KEY (run, stream)
) WITHOUT ROWID;

CREATE TABLE checkpoints (
    instance INTEGER NOT NULL REFERENCES instances (id),
    namespace TEXT NOT NULL,
    stream TEXT NOT NULL,
    cursor TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (id),
    committed_at TEXT NOT NULL,
    PRIMARY KEY (instance, namespace, stream)
) WITHOUT ROWID;

-- What became of each staged cursor of a run.
CREATE TABLE decisions (
    run INTEGER NOT NULL REFERENCES runs (id),
    stream TEXT NOT NULL,
    committed INTEGER NOT NULL,
    reason TEXT,
    message TEXT,
    keys TEXT,
    PRIMARY KEY (run, stream)
) WITHOUT ROWID;

CREATE TABLE receipts (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    stream TEXT NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    key TEXT,
    line BLOB,
    at TEXT NOT NULL
);

CREATE INDEX receipts_of_run ON receipts (run, id);

-- `identity` is the key, or the locator where the gap has no key.
CREATE TABLE gaps (
    id INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL REFERENCES instances (id),
    namespace TEXT NOT NULL,
    stream TEXT NOT NULL,
    parent TEXT NOT NULL,
    identity TEXT NOT NULL,
    key TEXT,
    locator TEXT,
    reason TEXT NOT NULL,
    retryable INTEGER NOT NULL,
    status TEXT NOT NULL,
    first_run INTEGER NOT NULL REFERENCES runs (id),
    last_run INTEGER NOT NULL REFERENCES runs (id),
    times INTEGER NOT NULL DEFAULT 1,
    UNIQUE (instance, namespace, stream, parent, identity)
);

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    stored_at TEXT NOT NULL
) WITHOUT ROWID;

-- What happened to a run, written in the transaction of the change that it tells of.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    data TEXT NOT NULL
);

CREATE INDEX events_of_run ON events (run, id);
