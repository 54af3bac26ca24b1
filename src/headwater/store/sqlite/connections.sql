-- Every statement about connections, by name.

-- name: versions_of
SELECT connection, version FROM credential_versions WHERE owner = ? AND instance_id = ?;

-- name: connections_held
SELECT * FROM connections WHERE owner = ?1 AND instance_id = ?2 AND lifecycle <> 'revoked' ORDER BY reference;

-- name: connections_page
SELECT * FROM connections WHERE owner = ?1 AND instance_id = ?2 AND reference > ?3 ORDER BY reference LIMIT ?4;

-- name: connections_epoch
SELECT count(*) + coalesce(sum(revision), 0) FROM connections WHERE owner = ?1 AND instance_id = ?2;

-- name: connections_count
SELECT count(*) FROM connections WHERE owner = ?1 AND instance_id = ?2;

-- name: connection_at
SELECT * FROM connections WHERE owner = ?1 AND reference = ?2;

-- name: connection_as_read
-- The fence moves with every write; the rest is compared because it is what the copy was made of.
SELECT 1 FROM connections
WHERE owner = :owner AND reference = :reference AND fence = :fence AND generation = :generation AND version = :version
    AND lifecycle = 'live';

-- name: add_connection
INSERT INTO connections VALUES (
    :reference, :owner, :instance_id, :connector, :instance, :profile, :binding, :identity_kind, :identity_subject,
    :identity_display, :version, :evidence, :revision, :fence, :generation, :lifecycle,
    :refused_configuration_revision, :now_ms
);

-- name: change_connection
-- The fence tells that nobody wrote meanwhile; what was revoked stays so.
UPDATE connections SET
    profile = :profile, binding = :binding, identity_display = :identity_display, version = :version,
    evidence = :evidence, revision = :revision, fence = fence + 1, generation = :generation, lifecycle = :lifecycle,
    refused_configuration_revision = :refused_configuration_revision, published_at_ms = :now_ms
WHERE reference = :reference AND owner = :owner AND fence = :fence AND lifecycle <> 'revoked'
RETURNING reference;

-- name: acquisition_at
SELECT * FROM acquisitions WHERE owner = ?1 AND reference = ?2;

-- name: open_connect
SELECT * FROM acquisitions
WHERE owner = ?1 AND instance_id = ?2 AND state IN ('pending', 'completing') AND generation = 0 AND expires_at_ms > ?3
ORDER BY reference DESC LIMIT 1;

-- name: end_cut_off
UPDATE acquisitions
SET reason = CASE state WHEN 'pending' THEN 'expired' ELSE 'exchange_unknown' END, state = 'failed'
WHERE owner = ?1 AND instance_id = ?2 AND state IN ('pending', 'completing') AND generation = 0;

-- name: forget_acquisitions
-- The oldest that ended, where an instance has more than it may. References are made in the order of time.
DELETE FROM acquisitions WHERE owner = ?1 AND instance_id = ?2 AND state IN ('completed', 'failed') AND reference < (
    SELECT reference FROM acquisitions WHERE owner = ?1 AND instance_id = ?2
    ORDER BY reference DESC LIMIT 1 OFFSET ?3
);

-- name: add_acquisition
INSERT INTO acquisitions VALUES (
    :reference, :owner, :acting_user, :team, :instance_id, :connection, :configuration_revision, :generation,
    :expires_at_ms, :state, :reason
);

-- name: consume_acquisition
UPDATE acquisitions SET state = 'completing'
WHERE owner = ?1 AND reference = ?2 AND state = 'pending' AND expires_at_ms > ?3 RETURNING reference;

-- name: complete_acquisition
UPDATE acquisitions SET state = 'completed'
WHERE owner = ?1 AND reference = ?2 AND state = 'completing' AND expires_at_ms > ?3 RETURNING reference;

-- name: fail_acquisition
UPDATE acquisitions SET state = 'failed', reason = ?3
WHERE owner = ?1 AND reference = ?2 AND state IN ('pending', 'completing');

-- name: add_candidate
INSERT INTO credential_versions VALUES (:version, :connection, :owner, :instance_id, 'candidate', :now_ms);

-- name: store_version
-- A version that is being erased is linked to by nothing any more, whatever else fits.
INSERT INTO credential_versions VALUES (:version, :reference, :owner, :instance_id, 'stored', :now_ms)
ON CONFLICT (connection, version) DO UPDATE SET state = 'stored', since_ms = excluded.since_ms
WHERE state <> 'retiring' RETURNING version;

-- name: supersede_versions
UPDATE credential_versions SET state = 'superseded', since_ms = ?3
WHERE connection = ?1 AND state = 'stored' AND version IS NOT ?2;

-- name: abandon_candidates
UPDATE credential_versions SET state = 'superseded', since_ms = ?2 WHERE connection = ?1 AND state = 'candidate';

-- name: erasable_versions
-- Those whose time is over, candidates that nobody came back for too; the oldest of an instance where too many wait for
-- that; and those that were fenced before and are still there.
SELECT connection, version FROM (
    SELECT connection, version, state, since_ms,
        row_number() OVER (PARTITION BY instance_id, state ORDER BY since_ms DESC) AS place
    FROM credential_versions WHERE owner = ?1 AND state <> 'stored'
)
WHERE state = 'retiring' OR since_ms <= ?2 OR (state = 'superseded' AND place > ?3) ORDER BY connection, version;

-- name: retire_version
UPDATE credential_versions SET state = 'retiring' WHERE connection = ?1 AND version = ?2;

-- name: forget_version
DELETE FROM credential_versions WHERE connection = ?1 AND version = ?2 AND state = 'retiring';
