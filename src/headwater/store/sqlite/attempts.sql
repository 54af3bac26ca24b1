-- name: forget_keys
UPDATE attempts SET key = NULL, result = NULL
WHERE owner = ? AND instance_id = ? AND key IS NOT NULL AND state IN ('completed', 'failed') AND settled_at_ms <= ?

-- name: forget_old
DELETE FROM attempts WHERE owner = ? AND instance_id = ? AND key IS NULL
    AND state IN ('aborted', 'completed', 'failed') AND number <= (
        SELECT number FROM attempts WHERE owner = ? AND instance_id = ? ORDER BY number DESC LIMIT 1 OFFSET ?
    )

-- name: abort_left
UPDATE attempts SET state = 'aborted', key = NULL, settled_at_ms = ?
WHERE owner = ? AND instance_id = ? AND state = 'prepared'

-- name: give_up_left
UPDATE attempts SET state = 'indeterminate', classification = 'unknown', settled_at_ms = ?
WHERE owner = ? AND instance_id = ? AND state = 'dispatching'

-- name: attempt_of_key
SELECT attempt_id, owner, instance_id, connection, operation, fingerprint, issuer, reference, request_id, state, key,
    classification, cause, failure, result
FROM attempts WHERE owner = ? AND instance_id = ? AND key = ?

-- name: newest
SELECT attempt_id, owner, instance_id, connection, operation, fingerprint, issuer, reference, request_id, state, key,
    classification, cause, failure, prepared_at_ms
FROM attempts WHERE owner = ? AND instance_id = ? ORDER BY number DESC LIMIT ?

-- name: redemption
SELECT 1 FROM approval_redemptions WHERE issuer = ? AND reference = ?

-- name: redeem
INSERT INTO approval_redemptions (issuer, reference, attempt_id) VALUES (:issuer, :reference, :attempt_id)
ON CONFLICT DO NOTHING RETURNING 1

-- name: add_attempt
INSERT INTO attempts (attempt_id, owner, instance_id, connection, operation, fingerprint, issuer, reference,
    request_id, state, key, classification, prepared_at_ms)
VALUES (:attempt_id, :owner, :instance_id, :connection, :operation, :fingerprint, :issuer, :reference,
    :request_id, :state, :key, :classification, :now_ms)
ON CONFLICT DO NOTHING RETURNING 1

-- name: connection_now
SELECT lifecycle, generation FROM connections WHERE owner = ? AND reference = ?

-- name: approved_now
SELECT issuers.revision, policies.revision
FROM approval_issuers AS issuers JOIN approval_policies AS policies USING (owner)
WHERE owner = ? AND policies.instance_id = ?

-- name: dispatch
UPDATE attempts SET state = 'dispatching' WHERE attempt_id = ? AND state = 'prepared' RETURNING 1

-- name: settle
UPDATE attempts SET state = :state, classification = :classification, cause = :cause, failure = :failure,
    result = CASE WHEN key IS NULL THEN NULL ELSE :result END, settled_at_ms = :now_ms,
    key = CASE WHEN :classification = 'not_attempted' THEN NULL ELSE key END
WHERE attempt_id = :attempt_id AND settled_at_ms IS NULL
