-- Every statement about unfinished sign-ins, attempts and refreshes, by name.

-- name: forget_auth_states
DELETE FROM auth_states WHERE expires_at_ms <= ?1;

-- name: claim_auth_state
INSERT INTO auth_states VALUES (?1, ?2, 0, 1)
ON CONFLICT (nonce) DO UPDATE SET claimed = 1 WHERE claimed = 0
RETURNING nonce;

-- name: settle_auth_state
UPDATE auth_states SET wrong = wrong + ?2, claimed = (wrong + ?2 >= ?3) WHERE nonce = ?1 RETURNING claimed;

-- name: forget_auth_attempts
DELETE FROM auth_attempts WHERE forget_at_ms <= ?1;

-- name: auth_attempts_of
SELECT at_ms FROM auth_attempts WHERE key = ?1 AND at_ms > ?2 ORDER BY at_ms;

-- name: add_auth_attempt
INSERT INTO auth_attempts VALUES (?1, ?2, ?3);

-- name: refresh_at
SELECT state, version FROM refreshes WHERE connection = ?1 AND generation = ?2;

-- name: put_refresh
INSERT INTO refreshes VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (connection, generation) DO UPDATE SET state = ?3, version = ?4, since_ms = ?5;

-- name: forget_refreshes
DELETE FROM refreshes WHERE connection = ?1 AND generation <= ?2;
