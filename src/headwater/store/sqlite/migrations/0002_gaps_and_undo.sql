-- A gap is leased to the run that tries it again, and waits longer after each try that did not fetch it.
-- `due_at` is when it may be tried; `tried_at` puts those that waited longest first.
ALTER TABLE gaps ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gaps ADD COLUMN leased_by INTEGER REFERENCES runs (id);
ALTER TABLE gaps ADD COLUMN tried_at TEXT;
ALTER TABLE gaps ADD COLUMN due_at TEXT;
ALTER TABLE gaps ADD COLUMN last_error TEXT;

CREATE INDEX gaps_by_turn ON gaps (instance, status, due_at);

-- What a narrowed run misses is missing for whole runs too: a gap belongs to its authority.
UPDATE OR IGNORE gaps SET namespace = 'global' WHERE namespace LIKE 'global/%';
DELETE FROM gaps WHERE namespace LIKE 'global/%';

-- What a run found, so that it can be undone: where its versions begin, and the cursors that it replaced.
-- `previous` is the JSON text of a cursor, 'null' where there was none, NULL for runs of the release before.
ALTER TABLE runs ADD COLUMN first_version INTEGER;
ALTER TABLE runs ADD COLUMN undoes INTEGER REFERENCES runs (id);
ALTER TABLE runs ADD COLUMN undone_by INTEGER REFERENCES runs (id);
ALTER TABLE decisions ADD COLUMN previous TEXT;
ALTER TABLE decisions ADD COLUMN previous_run INTEGER REFERENCES runs (id);
