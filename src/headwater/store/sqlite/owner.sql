-- name: suppression_of
SELECT suppressed FROM runtime_records WHERE owner = ? AND instance_id = ?

-- name: set_suppression
INSERT INTO runtime_records (owner, instance_id, suppressed, since_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (owner, instance_id) DO UPDATE SET suppressed = excluded.suppressed, since_ms = excluded.since_ms

-- name: add_issue
INSERT INTO access_token_issues (issue, owner, connection, delivery, refreshed, at_ms) VALUES (?, ?, ?, ?, ?, ?)
