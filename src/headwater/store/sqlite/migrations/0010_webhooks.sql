-- Where a provider's webhooks for one connection come in; the secret that signs them is in custody, as this version.
CREATE TABLE webhook_endpoints (
    endpoint TEXT PRIMARY KEY,
    owner INTEGER NOT NULL,
    instance_id TEXT NOT NULL,
    connection TEXT NOT NULL UNIQUE,
    version TEXT NOT NULL,
    made_at_ms INTEGER NOT NULL,
    accepted INTEGER NOT NULL DEFAULT 0,
    repeated INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- What came in, for as long as its timestamp would be believed: it acts once.
CREATE TABLE webhook_deliveries (
    endpoint TEXT NOT NULL,
    delivery TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (endpoint, delivery)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_end ON webhook_deliveries (until_ms);
