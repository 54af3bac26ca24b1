-- The newest release that wrote this database, and a digest of the records that it keeps: an older one whose records differ
-- leaves the database alone. There is one row.
CREATE TABLE store_writer (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version TEXT NOT NULL,
    model TEXT NOT NULL
) STRICT;
