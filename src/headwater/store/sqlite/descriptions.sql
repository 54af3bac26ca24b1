-- name: keep
INSERT INTO descriptions (owner, instance_id, selection, operations, observed_at_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (owner, instance_id) DO UPDATE SET
    selection = excluded.selection, operations = excluded.operations, observed_at_ms = excluded.observed_at_ms

-- name: last
SELECT selection, operations, observed_at_ms FROM descriptions WHERE owner = ? AND instance_id = ?
