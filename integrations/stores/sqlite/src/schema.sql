CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    next INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    change INTEGER NOT NULL,
    status TEXT NOT NULL,
    brain TEXT NOT NULL,
    user TEXT,
    conversation TEXT,
    converses INTEGER NOT NULL,
    started INTEGER NOT NULL,
    at INTEGER NOT NULL,
    -- When the run has work; the least number for a running one.
    wake INTEGER,
    -- The worker that has claimed the run and not released it.
    owner TEXT,
    summary TEXT NOT NULL
) STRICT;
CREATE INDEX runs_by_start ON runs (started, run);
CREATE INDEX runs_by_user ON runs (user, started, run) WHERE user IS NOT NULL;
CREATE INDEX runs_by_conversation ON runs (conversation, started, run) WHERE conversation IS NOT NULL;
CREATE INDEX runs_by_wake ON runs (wake) WHERE wake IS NOT NULL;
CREATE INDEX runs_by_change ON runs (change);

-- Continues the numbers of changes after the rows with the last ones are removed.
CREATE TABLE counter (change INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (0);

-- When a run with work is due again, by its key: until is a time on the clock of the machine, owner is the worker for
-- which it is reserved, and refusals are the codes that have refused it, as a JSON array.
CREATE TABLE deferrals (
    run INTEGER PRIMARY KEY,
    owner TEXT,
    until INTEGER,
    failures INTEGER NOT NULL,
    refusals TEXT NOT NULL
) STRICT;

-- A run's events are contiguous: id is the run's key times 2^32, plus the event's number.
CREATE TABLE events (id INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;

-- The signals that a run accepted, by its key, with the number of the event.
CREATE TABLE signals (
    run INTEGER NOT NULL,
    signal TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (run, signal)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    run INTEGER PRIMARY KEY,
    next INTEGER NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL
) STRICT;

-- The saved parts of runs' prompts: id is the run's key times 2^32, plus the number of the first event after the part.
CREATE TABLE saved_prompts (
    id INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL
) STRICT;

-- The positions of durable sinks in runs, by the runs' keys, with the worker that feeds them.
CREATE TABLE sinks (
    run INTEGER NOT NULL,
    sink TEXT NOT NULL,
    next INTEGER NOT NULL,
    feeder TEXT,
    PRIMARY KEY (run, sink)
) STRICT, WITHOUT ROWID;
CREATE INDEX sinks_by_feeder ON sinks (sink, feeder) WHERE feeder IS NOT NULL;

-- A run's pending items are contiguous, like its events: id is the run's key times 2^32, plus a number. The index has the
-- order of the list. The run's id and its brain's title are repeated here: the order needs the id.
CREATE TABLE pending (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    run TEXT NOT NULL,
    brain TEXT NOT NULL,
    since INTEGER NOT NULL,
    person INTEGER NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    kind TEXT NOT NULL
) STRICT;
CREATE INDEX pending_by_age ON pending (at, run, since, id, person);

CREATE TABLE waits (
    webhook TEXT NOT NULL,
    identifier TEXT NOT NULL,
    pending INTEGER NOT NULL,
    PRIMARY KEY (webhook, identifier, pending)
) STRICT, WITHOUT ROWID;

-- A delivered webhook keeps its id until it expires, without its content.
CREATE TABLE mail (
    id TEXT PRIMARY KEY,
    webhook TEXT NOT NULL,
    identifier TEXT NOT NULL,
    at INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    taken_by TEXT,
    taken_at INTEGER,
    content TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_to_take ON mail (webhook, identifier, at, id) WHERE taken_by IS NULL;
CREATE INDEX mail_by_expiry ON mail (expires);

-- Timers that start prompts. The columns override the document.
CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    due INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    conversation TEXT,
    user TEXT,
    origin TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers (due, id);
CREATE INDEX timers_by_owner ON timers (conversation, user);

-- The contents of files; at is the time of their last storing.
CREATE TABLE blobs (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;

-- The files that a run references, by its key.
CREATE TABLE run_blobs (run INTEGER NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (run, sha256)) STRICT, WITHOUT ROWID;

-- Small documents beside the logs.
CREATE TABLE entries (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
