-- Small documents beside the logs.
CREATE TABLE entries (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (kind, key)
);
