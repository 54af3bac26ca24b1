-- The accounts that are connected. A row is written when a connection is published, and stays for good. Nothing here is
-- a secret: `version` is the custody's reference of the credential. `revision` is shown; `fence` moves with each write,
-- `generation` with each credential. Times are milliseconds since 1970. `evidence` and `binding` are JSON objects.
CREATE TABLE connections (
    reference TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    connector TEXT NOT NULL,
    instance TEXT NOT NULL,
    profile TEXT NOT NULL,
    binding TEXT NOT NULL,
    identity_kind TEXT NOT NULL,
    identity_subject TEXT NOT NULL,
    identity_display TEXT NOT NULL,
    version TEXT NOT NULL,
    evidence TEXT NOT NULL,
    revision INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    lifecycle TEXT NOT NULL CHECK (lifecycle IN ('live', 'stale', 'revoked')),
    refused_configuration_revision TEXT,
    published_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX connections_of_instances ON connections (owner, instance_id, reference);

-- Attempts to get a credential, with who owns the connection, who acted, and for which team; on a machine of one person
-- that is the owner, three times. `generation` is that of the credential which one renews, 0 where a connection is new.
CREATE TABLE acquisitions (
    reference TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    acting_user INTEGER NOT NULL,
    team INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    connection TEXT NOT NULL,
    configuration_revision TEXT NOT NULL,
    generation INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'completing', 'completed', 'failed')),
    reason TEXT CHECK (reason IN ('rejected', 'exchange_unknown', 'expired')),
    CHECK ((state = 'failed') = (reason IS NOT NULL))
) STRICT;

CREATE INDEX open_acquisitions ON acquisitions (owner, instance_id) WHERE state IN ('pending', 'completing');

-- What custody keeps. A candidate is stored when its connection is published; what is superseded is erased after a day,
-- and fenced as `retiring` before: nothing is linked to it again.
CREATE TABLE credential_versions (
    version TEXT NOT NULL,
    connection TEXT NOT NULL,
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('candidate', 'stored', 'superseded', 'retiring')),
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (connection, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX versions_to_erase ON credential_versions (owner, instance_id) WHERE state <> 'stored';
