-- name: issuer
SELECT issuer_id, revision, keys FROM approval_issuers WHERE owner = ?

-- name: add_issuer
INSERT INTO approval_issuers (owner, issuer_id, revision, keys) VALUES (:owner, :issuer_id, :revision, :keys)
ON CONFLICT DO NOTHING RETURNING 1

-- name: change_issuer
UPDATE approval_issuers SET revision = :revision, keys = :keys
WHERE owner = :owner AND issuer_id = :issuer_id AND revision = :before RETURNING 1

-- name: policy
SELECT policy FROM approval_policies WHERE owner = ? AND instance_id = ?

-- name: add_policy
INSERT INTO approval_policies (owner, instance_id, revision, policy) VALUES (:owner, :instance_id, :revision, :policy)
ON CONFLICT DO NOTHING RETURNING 1

-- name: change_policy
UPDATE approval_policies SET revision = :revision, policy = :policy
WHERE owner = :owner AND instance_id = :instance_id AND revision = :before RETURNING 1

-- name: floor
SELECT floor_ms FROM approval_clocks WHERE owner = ?

-- name: set_floor
INSERT OR REPLACE INTO approval_clocks (owner, floor_ms) VALUES (?, ?)

-- name: raise_floor
INSERT INTO approval_clocks (owner, floor_ms) VALUES (?, ?)
ON CONFLICT (owner) DO UPDATE SET floor_ms = max(floor_ms, excluded.floor_ms) RETURNING floor_ms
