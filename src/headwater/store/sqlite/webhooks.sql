-- name: webhook_endpoint
SELECT endpoint, instance_id, connection, version, made_at_ms, accepted, repeated, dropped FROM webhook_endpoints
WHERE owner = ? AND endpoint = ?

-- name: webhook_endpoints_of
SELECT endpoint, instance_id, connection, version, made_at_ms, accepted, repeated, dropped FROM webhook_endpoints
WHERE owner = ? AND instance_id = ? ORDER BY made_at_ms

-- name: add_webhook_endpoint
INSERT INTO webhook_endpoints (owner, endpoint, instance_id, connection, version, made_at_ms) VALUES (?, ?, ?, ?, ?, ?)

-- name: forget_webhook_endpoint
DELETE FROM webhook_endpoints WHERE owner = ? AND endpoint = ?

-- name: count_webhook
UPDATE webhook_endpoints
SET accepted = accepted + (?3 = 'accepted'), repeated = repeated + (?3 = 'repeated'), dropped = dropped + (?3 = 'dropped')
WHERE owner = ?1 AND endpoint = ?2

-- name: forget_webhook_deliveries
DELETE FROM webhook_deliveries WHERE until_ms < ?

-- name: claim_webhook_delivery
INSERT INTO webhook_deliveries (endpoint, delivery, until_ms) VALUES (?, ?, ?)
ON CONFLICT (endpoint, delivery) DO NOTHING RETURNING endpoint

-- name: release_webhook_delivery
DELETE FROM webhook_deliveries WHERE endpoint = ? AND delivery = ?
