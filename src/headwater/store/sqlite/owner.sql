-- name: suppression_of
SELECT suppressed FROM runtime_records WHERE owner = ? AND instance_id = ?

-- name: set_suppression
INSERT INTO runtime_records (owner, instance_id, suppressed, since_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (owner, instance_id) DO UPDATE SET suppressed = excluded.suppressed, since_ms = excluded.since_ms

-- name: forget_issues
-- The oldest, where an instance has more than it may. Ids are made in the order of time.
WITH had AS (
    SELECT i.issue FROM access_token_issues AS i JOIN connections AS c ON c.owner = i.owner AND c.reference = i.connection
    WHERE i.owner = ?1 AND c.instance_id = (SELECT instance_id FROM connections WHERE owner = ?1 AND reference = ?2)
)
DELETE FROM access_token_issues WHERE issue IN (SELECT issue FROM had ORDER BY issue DESC LIMIT -1 OFFSET ?3)

-- name: add_issue
INSERT INTO access_token_issues (issue, owner, connection, delivery, refreshed, at_ms) VALUES (?, ?, ?, ?, ?, ?)

-- name: add_disconnection
INSERT INTO disconnections (owner, instance_id, connector, instance, connection, revocation, at_ms)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, instance_id) DO UPDATE SET
    connection = excluded.connection, revocation = excluded.revocation, at_ms = excluded.at_ms

-- name: disconnection_of
SELECT connection, revocation, at_ms FROM disconnections WHERE owner = ? AND instance_id = ?

-- name: end_disconnection
DELETE FROM disconnections WHERE owner = ? AND instance_id = ?
