-- What an integration's code said of its operations when it was last started for an instance: the newest alone is kept.
-- `selection` digests the configuration and the code that it was said under. The time is in milliseconds since 1970.
CREATE TABLE descriptions (
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    selection TEXT NOT NULL,
    operations TEXT NOT NULL,
    observed_at_ms INTEGER NOT NULL,
    PRIMARY KEY (owner, instance_id)
) STRICT;
