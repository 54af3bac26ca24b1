-- Every statement of the store, by name. A reader of the code finds here what it asks of the database.

-- name: find_instance
SELECT id FROM instances WHERE connector_id = ?1 AND name = ?2 AND connector IN (?3, ?4);

-- name: connector_named
SELECT connector_id FROM instances WHERE connector = ?1 LIMIT 1;

-- name: add_instance
INSERT INTO instances (connector_id, connector, name, created_at) VALUES (?1, ?2, ?3, ?4) RETURNING id;

-- name: add_stream
INSERT INTO streams (instance, name, semantics, time_field) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (instance, name) DO UPDATE SET semantics = excluded.semantics, time_field = excluded.time_field
RETURNING id;

-- name: checkpoints_of
SELECT stream, cursor FROM checkpoints WHERE instance = ?1 AND namespace = ?2 ORDER BY stream;

-- name: instances_of
SELECT connector, name FROM instances WHERE connector_id = ?1 ORDER BY connector, name;

-- name: state_of
SELECT stream, cursor, committed_at FROM checkpoints WHERE instance = ?1 AND namespace = ?2 ORDER BY stream;

-- name: add_put
-- A run of nothing but cursors that came from outside. It begins behind every version, and ends at once.
INSERT INTO runs (run_id, instance, namespace, mode, status, cause, message, started_at, ended_at, graph, first_version)
VALUES (?1, ?2, ?3, 'put', 'succeeded', 'put', 'Cursors were put from outside.', ?4, ?4, '{}',
    (SELECT coalesce(max(seq), 0) + 1 FROM versions)) RETURNING id;

-- name: add_run
INSERT INTO runs (run_id, instance, namespace, mode, status, started_at, graph, first_version)
VALUES (?1, ?2, ?3, ?4, 'running', ?5, ?6, (SELECT coalesce(max(seq), 0) + 1 FROM versions)) RETURNING id;

-- name: add_run_stream
INSERT INTO run_streams (run, stream) VALUES (?1, ?2);

-- name: add_event
INSERT INTO events (run, kind, at, data) VALUES (?1, ?2, ?3, ?4);

-- name: last_version
SELECT coalesce(max(seq), 0) FROM versions;

-- name: current_version
-- The current version of a key, and how it differs from a text: 0 other text, 1 the same, 2 it was a delete.
-- A scalar subquery, because the join costs five times as much for each record.
SELECT version, (SELECT CASE WHEN data IS ?3 THEN 1 WHEN data IS NULL THEN 2 ELSE 0 END FROM versions WHERE seq = version)
FROM records WHERE stream = ?1 AND key = ?2;

-- name: add_version
INSERT INTO versions (seq, prev, stream, run, time, key, emitted_at, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- name: point_record
INSERT INTO records (stream, key, version) VALUES (?1, ?2, ?3)
ON CONFLICT (stream, key) DO UPDATE SET version = excluded.version;

-- name: count_live
UPDATE streams SET live = live + ?2, updated_at = ?3 WHERE id = ?1;

-- name: add_receipt
INSERT INTO receipts (run, stream, reason, message, key, line, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: stage_cursor
INSERT INTO staged (run, stream, cursor) VALUES (?1, ?2, ?3)
ON CONFLICT (run, stream) DO UPDATE SET cursor = excluded.cursor;

-- name: note_gap
INSERT INTO gaps (instance, namespace, stream, parent, identity, key, locator, reason, retryable, last_error, status,
    first_run, last_run, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'pending', ?11, ?11, ?12)
ON CONFLICT (instance, namespace, stream, parent, identity) DO UPDATE SET
    locator = coalesce(excluded.locator, locator), reason = excluded.reason, retryable = excluded.retryable,
    last_error = excluded.last_error, last_run = excluded.last_run, times = times + 1,
    attempts = CASE status WHEN 'recovered' THEN 0 ELSE attempts END,
    due_at = CASE status WHEN 'recovered' THEN excluded.due_at ELSE due_at END, status = 'pending';

-- name: pending_gaps
SELECT stream, key FROM gaps WHERE instance = ?1 AND namespace = ?2 AND status = 'pending' AND key IS NOT NULL;

-- name: heal_gap
UPDATE gaps SET status = 'recovered', last_run = ?5, leased_by = NULL
WHERE instance = ?1 AND namespace = ?2 AND stream = ?3 AND key = ?4 AND status = 'pending';

-- name: gaps_by_turn
-- The longest due first, and never only those: each try moves a gap behind all that are due before its next turn.
SELECT id, stream, key, attempts FROM gaps
WHERE instance = ?1 AND namespace = ?2 AND status = 'pending' AND key IS NOT NULL AND leased_by IS NULL
    AND (?3 IS NULL OR (attempts < ?4 AND coalesce(due_at, '') <= ?3))
    AND (retryable OR ?6 IS NOT NULL)
    AND (?5 IS NULL OR stream IN (SELECT value FROM json_each(?5)))
    AND (?6 IS NULL OR id IN (SELECT value FROM json_each(?6)))
    AND (?7 IS NULL OR coalesce(tried_at, '') < ?7)
ORDER BY coalesce(due_at, ''), id LIMIT ?8;

-- name: lease_gap
UPDATE gaps SET leased_by = ?2, attempts = attempts + 1, tried_at = ?3, due_at = ?4 WHERE id = ?1;

-- name: release_gaps
UPDATE gaps SET leased_by = NULL WHERE leased_by = ?1;

-- name: add_tally
INSERT INTO run_streams (run, stream, accepted, unchanged, deleted, rejected, gaps) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (run, stream) DO UPDATE SET
    accepted = accepted + excluded.accepted, unchanged = unchanged + excluded.unchanged,
    deleted = deleted + excluded.deleted, rejected = rejected + excluded.rejected, gaps = gaps + excluded.gaps;

-- name: note_connector_ended
UPDATE runs SET connector_ended = 1 WHERE id = ?1;

-- name: note_cancelled
UPDATE runs SET cancel_requested = 1 WHERE id = ?1;

-- name: commit_checkpoint
INSERT INTO checkpoints (instance, namespace, stream, cursor, run, committed_at)
SELECT ?1, ?2, ?3, cursor, ?4, ?5 FROM staged WHERE run = ?4 AND stream = ?3
ON CONFLICT (instance, namespace, stream) DO UPDATE SET
    cursor = excluded.cursor, run = excluded.run, committed_at = excluded.committed_at;

-- name: add_decision
INSERT INTO decisions (run, stream, committed, reason, message, keys) VALUES (?1, ?2, 0, ?3, ?4, ?5);

-- name: add_commit
INSERT INTO decisions (run, stream, committed, previous, previous_run) VALUES (?1, ?2, 1, ?3, ?4);

-- name: drop_staged
DELETE FROM staged WHERE run = ?1;

-- name: end_run
UPDATE runs SET status = ?2, cause = ?3, message = ?4, ended_at = ?5, facts = ?6, stderr_tail = ?7 WHERE id = ?1;

-- name: orphans_of
SELECT id, run_id, namespace, graph, connector_ended, cancel_requested FROM runs
WHERE instance = ?1 AND status = 'running' ORDER BY id;

-- name: staged_of
SELECT stream FROM staged WHERE run = ?1 ORDER BY stream;

-- name: gapped_streams
SELECT DISTINCT stream FROM gaps WHERE instance = ?1 AND namespace = ?2 AND status = 'pending';

-- name: add_blob
INSERT INTO blobs (sha256, size_bytes, stored_at) VALUES (?1, ?2, ?3) ON CONFLICT (sha256) DO NOTHING;

-- name: list_instances
SELECT i.connector, i.name, i.connector_id, i.created_at,
    (SELECT sum(s.live) FROM streams AS s WHERE s.instance = i.id) AS records,
    (SELECT r.run_id FROM runs AS r WHERE r.instance = i.id ORDER BY r.id DESC LIMIT 1) AS last_run,
    (SELECT r.status FROM runs AS r WHERE r.instance = i.id ORDER BY r.id DESC LIMIT 1) AS last_status
FROM instances AS i ORDER BY i.connector, i.name;

-- name: list_streams
SELECT i.connector || '/' || i.name AS instance, s.name AS stream, s.semantics, s.live AS records, s.updated_at,
    c.committed_at AS checkpoint_at, s.id AS stream_id, s.time_field,
    (SELECT max(d.at_ms) FROM disconnections AS d WHERE d.connector = i.connector AND d.instance = i.name)
        AS inactive_since_ms
FROM streams AS s
INNER JOIN instances AS i ON i.id = s.instance
LEFT JOIN checkpoints AS c ON c.instance = s.instance AND c.stream = s.name AND c.namespace = 'global'
WHERE (?1 IS NULL OR i.connector || '/' || i.name = ?1) AND (?2 IS NULL OR s.name = ?2)
ORDER BY i.connector, i.name, s.name;

-- name: list_runs
SELECT r.id AS position, r.run_id, i.connector || '/' || i.name AS instance, r.mode, r.status, r.cause, r.message,
    r.started_at, r.ended_at, r.namespace,
    (SELECT sum(accepted) FROM run_streams WHERE run = r.id) AS accepted,
    (SELECT sum(unchanged) FROM run_streams WHERE run = r.id) AS unchanged,
    (SELECT sum(rejected) FROM run_streams WHERE run = r.id) AS rejected
FROM runs AS r INNER JOIN instances AS i ON i.id = r.instance
WHERE (?1 IS NULL OR i.connector || '/' || i.name = ?1) AND (?2 IS NULL OR r.status = ?2) AND (?3 IS NULL OR r.id < ?3)
ORDER BY r.id DESC LIMIT ?4;

-- name: find_run
SELECT r.id AS position, r.run_id, i.connector || '/' || i.name AS instance, i.connector_id, r.mode, r.status, r.cause,
    r.message, r.started_at, r.ended_at, r.namespace, r.facts, r.stderr_tail, r.graph, u.run_id AS undone_by
FROM runs AS r LEFT JOIN runs AS u ON u.id = r.undone_by INNER JOIN instances AS i ON i.id = r.instance
WHERE (?1 = 'last' OR r.run_id = ?1) AND (?2 IS NULL OR i.connector || '/' || i.name = ?2)
ORDER BY r.id DESC LIMIT 1;

-- name: past_runs
-- Whole runs of an instance in its own name, whoever started them. GLOB finds a name that was made distinct.
SELECT r.started_at, r.ended_at, r.status, json_extract(r.facts, '$.error.hint') AS hint
FROM runs AS r INNER JOIN instances AS i ON i.id = r.instance
WHERE i.connector_id = ?1 AND i.name = ?3 AND (i.connector = ?2 OR i.connector GLOB ?2 || '-??????')
    AND r.namespace = 'global' AND r.mode NOT IN ('undo', 'put')
    AND NOT EXISTS (
        SELECT 1 FROM json_each(?4) WHERE value NOT IN (SELECT stream FROM run_streams WHERE run = r.id)
    )
ORDER BY r.id DESC LIMIT ?5;

-- name: streams_of_run
SELECT stream, accepted, unchanged, deleted, rejected, gaps FROM run_streams WHERE run = ?1 ORDER BY stream;

-- name: decisions_of_run
SELECT stream, committed, reason, message, keys FROM decisions WHERE run = ?1 ORDER BY stream;

-- name: events_of_run
SELECT kind, at, data FROM events WHERE run = ?1 ORDER BY id;

-- name: gaps_of_run
SELECT stream, parent, key, locator, reason, retryable, status, times FROM gaps
WHERE last_run = ?1 AND status = 'pending' ORDER BY id LIMIT ?2;

-- name: gaps_healed_by
SELECT count(*) FROM gaps WHERE last_run = ?1 AND status = 'recovered';

-- name: list_gaps
SELECT g.id AS gap, i.connector || '/' || i.name AS instance, g.stream, g.parent, g.key, g.reason, g.retryable,
    CASE WHEN g.status = 'recovered' THEN 'recovered' WHEN g.leased_by IS NOT NULL THEN 'in_progress'
        WHEN NOT g.retryable THEN 'not_retryable' WHEN g.attempts >= ?5 THEN 'given_up' ELSE 'pending' END AS status,
    g.times, g.attempts AS tries, g.tried_at, g.due_at, a.run_id AS first_run, b.run_id AS last_run
FROM gaps AS g
INNER JOIN instances AS i ON i.id = g.instance
INNER JOIN runs AS a ON a.id = g.first_run
INNER JOIN runs AS b ON b.id = g.last_run
WHERE (?1 IS NULL OR i.connector || '/' || i.name = ?1) AND (?2 OR g.status = 'pending') AND (?3 IS NULL OR g.id < ?3)
    AND (?6 IS NULL OR g.id = ?6)
ORDER BY g.id DESC LIMIT ?4;

-- name: words_of_gap
SELECT locator, last_error FROM gaps WHERE id = ?1;

-- name: instances_with_gaps
SELECT DISTINCT i.connector || '/' || i.name AS instance FROM gaps AS g INNER JOIN instances AS i ON i.id = g.instance
WHERE g.status = 'pending' AND g.key IS NOT NULL AND g.namespace = 'global' ORDER BY instance;

-- name: list_receipts
SELECT p.id AS receipt, r.run_id, i.connector || '/' || i.name AS instance, p.stream, p.reason, p.message, p.key,
    length(p.line) AS bytes, p.at
FROM receipts AS p
INNER JOIN runs AS r ON r.id = p.run
INNER JOIN instances AS i ON i.id = r.instance
WHERE (?1 IS NULL OR i.connector || '/' || i.name = ?1) AND (?2 IS NULL OR r.run_id = ?2)
    AND (?3 IS NULL OR p.stream = ?3) AND (?4 IS NULL OR p.id < ?4)
ORDER BY p.id DESC LIMIT ?5;

-- name: find_receipt
SELECT p.id AS receipt, r.run_id, i.connector || '/' || i.name AS instance, p.stream, p.reason, p.message, p.key, p.line, p.at
FROM receipts AS p
INNER JOIN runs AS r ON r.id = p.run
INNER JOIN instances AS i ON i.id = r.instance
WHERE p.id = ?1;

-- name: list_state
SELECT i.connector || '/' || i.name AS instance, c.namespace, c.stream, c.cursor, c.committed_at, r.run_id
FROM checkpoints AS c
INNER JOIN instances AS i ON i.id = c.instance
INNER JOIN runs AS r ON r.id = c.run
WHERE i.connector || '/' || i.name = ?1 ORDER BY c.namespace, c.stream;

-- name: records_by_arrival
SELECT v.seq, v.key, v.time, v.emitted_at, v.data
FROM versions AS v INNER JOIN records AS r ON r.stream = v.stream AND r.key = v.key AND r.version = v.seq
WHERE v.stream = ?1 AND v.data IS NOT NULL AND v.seq < coalesce(?2, 9223372036854775807)
    AND (?3 IS NULL OR unixepoch(v.emitted_at, 'subsec') * 1000000 >= ?3)
    AND (?4 IS NULL OR unixepoch(v.emitted_at, 'subsec') * 1000000 < ?4)
    AND {fields}
ORDER BY v.seq DESC LIMIT ?5;

-- name: records_by_time
SELECT v.seq, v.key, v.time, v.emitted_at, v.data
FROM versions AS v INNER JOIN records AS r ON r.stream = v.stream AND r.key = v.key AND r.version = v.seq
WHERE v.stream = ?1 AND v.time IS NOT NULL AND v.data IS NOT NULL
    AND v.time <= coalesce(?6, 9223372036854775807)
    AND (v.time < coalesce(?6, 9223372036854775807) OR v.seq < coalesce(?2, 9223372036854775807))
    AND v.time >= coalesce(?3, -9223372036854775807) AND v.time < coalesce(?4, 9223372036854775807)
    AND {fields}
ORDER BY v.time DESC, v.seq DESC LIMIT ?5;

-- name: records_without_time
SELECT v.seq, v.key, v.time, v.emitted_at, v.data
FROM versions AS v INNER JOIN records AS r ON r.stream = v.stream AND r.key = v.key AND r.version = v.seq
WHERE v.stream = ?1 AND v.time IS NULL AND v.data IS NOT NULL AND v.seq < coalesce(?2, 9223372036854775807)
    AND {fields}
ORDER BY v.seq DESC LIMIT ?5;

-- name: find_record
SELECT v.seq, v.key, v.time, v.emitted_at, v.data, runs.run_id
FROM records AS r
INNER JOIN versions AS v ON v.seq = r.version
INNER JOIN runs ON runs.id = v.run
WHERE r.stream = ?1 AND r.key = ?2;

-- name: history_of_record
WITH RECURSIVE chain (seq) AS (
    SELECT version FROM records WHERE stream = ?1 AND key = ?2
    UNION ALL
    SELECT v.prev FROM versions AS v INNER JOIN chain AS c ON v.seq = c.seq WHERE v.prev IS NOT NULL
)
SELECT v.seq AS version, v.emitted_at, v.data, runs.run_id
FROM chain INNER JOIN versions AS v ON v.seq = chain.seq INNER JOIN runs ON runs.id = v.run
ORDER BY v.seq DESC LIMIT ?3;

-- name: repeated_versions
-- Versions that hold the very text of the version before them: there must never be one.
SELECT count(*) FROM versions AS v INNER JOIN versions AS p ON p.seq = v.prev WHERE v.stream = ?1 AND v.data IS p.data;

-- name: checkpoint_at
SELECT cursor, run FROM checkpoints WHERE instance = ?1 AND namespace = ?2 AND stream = ?3;

-- name: run_to_undo
SELECT r.id, r.instance, coalesce(r.namespace, ''), r.first_version, r.undoes, r.undone_by IS NOT NULL,
    EXISTS (SELECT 1 FROM runs AS o WHERE o.instance = r.instance AND o.status = 'running')
FROM runs AS r WHERE r.run_id = ?1;

-- name: cursors_to_undo
SELECT d.stream, d.previous, d.previous_run, c.run
FROM decisions AS d
LEFT JOIN checkpoints AS c ON c.instance = ?2 AND c.namespace = ?3 AND c.stream = d.stream
WHERE d.run = ?1 AND d.committed ORDER BY d.stream;

-- name: void_runs
SELECT id FROM runs WHERE instance = ?1 AND (undoes IS NOT NULL OR undone_by IS NOT NULL);

-- name: add_undoing_run
INSERT INTO runs (run_id, instance, namespace, mode, status, cause, started_at, ended_at, graph, undoes, message)
VALUES (?1, ?2, nullif(?3, ''), 'undo', 'succeeded', 'undo', ?4, ?4, '{}', ?5, ?6) RETURNING id;

-- name: streams_of
SELECT id, name FROM streams WHERE instance = ?1 ORDER BY name;

-- name: records_of_run
SELECT DISTINCT s.name, v.key, r.version
FROM versions AS v
INNER JOIN streams AS s ON s.id = v.stream
INNER JOIN records AS r ON r.stream = v.stream AND r.key = v.key
WHERE v.run = ?1 AND v.seq BETWEEN ?2 AND ?3;

-- name: version_at
SELECT seq, prev, run, time, emitted_at, data FROM versions WHERE seq = ?1;

-- name: drop_checkpoint
DELETE FROM checkpoints WHERE instance = ?1 AND namespace = ?2 AND stream = ?3;

-- name: restore_checkpoint
UPDATE checkpoints SET cursor = ?4, run = ?5, committed_at = ?6 WHERE instance = ?1 AND namespace = ?2 AND stream = ?3;

-- name: forget_gaps_of
DELETE FROM gaps WHERE first_run = ?1 AND last_run = ?1 AND status = 'pending';

-- name: reopen_gaps_of
UPDATE gaps SET status = 'pending' WHERE last_run = ?1 AND status = 'recovered' AND first_run <> ?1;

-- name: note_undone
UPDATE runs SET undone_by = ?2 WHERE id = ?1;

-- name: run_named
SELECT run_id FROM runs WHERE id = ?1;

-- name: search_fields_of
SELECT fields FROM search_streams WHERE stream = ?1;

-- name: search_built_to
SELECT built_to FROM search_streams WHERE stream = ?1;

-- name: declare_search
INSERT INTO search_streams (stream, fields, built_to) VALUES (?1, ?2, 0)
ON CONFLICT (stream) DO UPDATE SET fields = excluded.fields, built_to = 0;

-- name: versions_to_index
SELECT seq, live, CASE WHEN live THEN data END FROM (
    SELECT v.seq, v.data, v.seq = (SELECT r.version FROM records AS r WHERE r.stream = v.stream AND r.key = v.key) AS live
    FROM versions AS v WHERE v.stream = ?1 AND v.seq > ?2 ORDER BY v.seq LIMIT ?3
);

-- name: note_search_built
UPDATE search_streams SET built_to = ?2 WHERE stream = ?1;

-- name: forget_search
-- A stream that has been gone through and declares nothing more to search.
DELETE FROM search_streams WHERE stream = ?1 AND fields = '[]' AND built_to IS NULL;

-- name: drop_from_search
DELETE FROM search WHERE rowid = ?1;

-- name: add_to_search
INSERT INTO search (rowid, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17);

-- name: search
-- The best of the newest matches, and how many were ranked. The index goes by itself from the newest to the oldest.
WITH found AS MATERIALIZED (
    SELECT search.rowid AS seq, bm25(search) AS score FROM search
    WHERE search MATCH ?1
        AND (?2 IS NULL OR EXISTS (
            SELECT 1 FROM versions AS v WHERE v.seq = search.rowid AND v.stream IN (SELECT value FROM json_each(?2))
        ))
    ORDER BY search.rowid DESC LIMIT ?3 + 1
)
SELECT f.score, f.seq, i.connector || '/' || i.name, s.name, v.key, v.emitted_at, v.data, x.fields,
    (SELECT count(*) FROM found)
FROM (
    SELECT score, seq FROM found WHERE ?4 IS NULL OR score > ?4 OR (score = ?4 AND seq < ?5)
    ORDER BY score, seq DESC LIMIT ?6
) AS f
INNER JOIN versions AS v ON v.seq = f.seq
INNER JOIN streams AS s ON s.id = v.stream
INNER JOIN instances AS i ON i.id = s.instance
INNER JOIN search_streams AS x ON x.stream = v.stream
ORDER BY f.score, f.seq DESC;

-- name: searches_building
SELECT count(*) FROM search_streams
WHERE built_to IS NOT NULL AND (?1 IS NULL OR stream IN (SELECT value FROM json_each(?1)));

-- name: searched_streams
SELECT s.id FROM streams AS s
INNER JOIN instances AS i ON i.id = s.instance
INNER JOIN search_streams AS x ON x.stream = s.id
WHERE (?1 IS NULL OR i.connector || '/' || i.name = ?1) AND (?2 IS NULL OR s.name = ?2);
