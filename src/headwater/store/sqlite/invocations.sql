-- name: dispatched
INSERT INTO invocations
    (request_id, owner, instance_id, connector, instance, connection, operation, revision, effect, dispatched_at_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: forget_old
DELETE FROM invocations WHERE owner = ? AND instance_id = ? AND effect = 'read' AND number <= (
    SELECT number FROM invocations WHERE owner = ? AND instance_id = ? ORDER BY number DESC LIMIT 1 OFFSET ?
)

-- name: answered
UPDATE invocations SET answered_at_ms = ?, outcome = ? WHERE request_id = ? AND outcome IS NULL

-- name: page
SELECT number, request_id, connector, instance, connection, operation, revision, effect,
    dispatched_at_ms, answered_at_ms, outcome
FROM invocations WHERE owner = ? AND instance_id = ? AND number < ? ORDER BY number DESC LIMIT ?
