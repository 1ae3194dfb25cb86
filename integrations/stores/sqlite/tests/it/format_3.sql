PRAGMA application_id = 1349481321;
PRAGMA user_version = 3;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE blobs (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
INSERT INTO "blobs" VALUES(1,'7365d029861e32c521f8089b00a6fb32daf0615025b69b599d1ce53501b845c2',1,X'612066696C65');
CREATE TABLE counter (change INTEGER NOT NULL) STRICT;
INSERT INTO "counter" VALUES(0);
CREATE TABLE deferrals (
    run INTEGER PRIMARY KEY,
    owner TEXT,
    until INTEGER,
    failures INTEGER NOT NULL,
    refusals TEXT NOT NULL
) STRICT;
INSERT INTO "deferrals" VALUES(2,NULL,NULL,0,'["old code"]');
CREATE TABLE ended_models (
    run INTEGER NOT NULL,
    place INTEGER NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    -- Billionths of the currency's unit.
    cost INTEGER NOT NULL,
    partial INTEGER NOT NULL,
    PRIMARY KEY (run, place)
) STRICT, WITHOUT ROWID;
INSERT INTO "ended_models" VALUES(1,0,'openai/one',4,2,0,5,0);
INSERT INTO "ended_models" VALUES(1,1,'local',3,0,0,0,1);
CREATE TABLE ended_runs (
    run INTEGER PRIMARY KEY,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    status TEXT NOT NULL,
    brain TEXT NOT NULL,
    user TEXT,
    -- Microseconds; NULL for the runs of an earlier format.
    active INTEGER,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    -- Billionths of the currency's unit.
    cost INTEGER NOT NULL,
    currency TEXT,
    partial INTEGER NOT NULL,
    cause TEXT
, model TEXT) STRICT;
INSERT INTO "ended_runs" VALUES(1,1000000,1000000,'completed','Sample',NULL,NULL,7,2,0,0,NULL,0,NULL,'');
CREATE TABLE entries (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "entries" VALUES('note','one',2,'"text"');
CREATE TABLE events (id INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;
INSERT INTO "events" VALUES(4294967296,'{"seq":0,"at":1000000,"type":"BRAIN_COMPLETE","result":"one"}');
INSERT INTO "events" VALUES(4294967297,'{"seq":1,"at":1000001,"epoch":1,"type":"RUN_CLAIMED","owner":"somebody"}');
INSERT INTO "events" VALUES(4294967298,'{"seq":2,"at":1000002,"path":"Work/0.0","type":"LOOP_OUTPUT","id":"1zads8cez28xa","file":{"name":"a.txt","media_type":"text/plain","size":6,"sha256":"7365d029861e32c521f8089b00a6fb32daf0615025b69b599d1ce53501b845c2","uri":"blob:7365d029861e32c521f8089b00a6fb32daf0615025b69b599d1ce53501b845c2"}}');
INSERT INTO "events" VALUES(8589934592,'{"seq":0,"at":1000000,"type":"BRAIN_COMPLETE","result":"one"}');
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
INSERT INTO "mail" VALUES('mail-1','slack','thread',1,1000000000000,'run-1',0,NULL);
INSERT INTO "mail" VALUES('mail-2','slack','another',1,1000000000000,NULL,NULL,'{"id":"mail-2","webhook":"slack","identifier":"another","payload":"a payload","actor":{},"at":1,"expires":1000000000000}');
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
INSERT INTO "pending" VALUES(8589934592,1000000,'run-2','Sample',0,1,'Loop/0.0','refund','{"amount":120}','{"approval":{"gate":{"reason":"more than 100","valid_for":5},"expires":7}}');
INSERT INTO "pending" VALUES(8589934593,1000000,'run-2','Sample',0,0,'Loop/0.1','refund','{"amount":120}','{"answer":{"waits":[{"webhook":"slack","identifier":"thread","schema":{"type":"string"},"expires":7,"otherwise":null}]}}');
CREATE TABLE run_blobs (run INTEGER NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (run, sha256)) STRICT, WITHOUT ROWID;
INSERT INTO "run_blobs" VALUES(1,'7365d029861e32c521f8089b00a6fb32daf0615025b69b599d1ce53501b845c2');
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
INSERT INTO "runs" VALUES(1,'run-1',3,1,1,'completed','Sample',NULL,NULL,0,1000000,1000002,NULL,NULL,'{"run":"run-1","brain":"Sample","version":1,"status":"completed","since":1000000,"started":1000000,"at":1000002,"next":3,"usage":{"input":7,"output":2},"models":[{"model":"openai/one","usage":{"input":4,"output":2},"nanos":5},{"model":"local","usage":{"input":3},"is_partial":true}]}');
INSERT INTO "runs" VALUES(2,'run-2',1,0,2,'waiting','Sample','ann',NULL,0,1000000,1000000,7,NULL,'{"run":"run-2","brain":"Sample","version":1,"user":"ann","status":"waiting","since":1000000,"started":1000000,"at":1000000,"next":1,"usage":{},"wake":7}');
CREATE TABLE saved_prompts (
    id INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL
) STRICT;
INSERT INTO "saved_prompts" VALUES(4294967298,0,1,'saved prompts');
CREATE TABLE signals (
    run INTEGER NOT NULL,
    signal TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (run, signal)
) STRICT, WITHOUT ROWID;
INSERT INTO "signals" VALUES(1,'s-1',0);
CREATE TABLE sinks (
    run INTEGER NOT NULL,
    sink TEXT NOT NULL,
    next INTEGER NOT NULL,
    feeder TEXT,
    PRIMARY KEY (run, sink)
) STRICT, WITHOUT ROWID;
INSERT INTO "sinks" VALUES(1,'audit',1,NULL);
CREATE TABLE snapshots (
    run INTEGER PRIMARY KEY,
    next INTEGER NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL
) STRICT;
INSERT INTO "snapshots" VALUES(1,2,1,'a snapshot');
CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    due INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    conversation TEXT,
    user TEXT,
    origin TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "timers" VALUES('t-1',5,2,'c','ann','run-1','{"trigger":{"id":"t-1","what":"water","due":5,"every":60000000},"brain":"Sample","options":{"garden":"front"},"user":"ann","conversation":"c","origin":"run-1","fired":2}');
CREATE TABLE waits (
    webhook TEXT NOT NULL,
    identifier TEXT NOT NULL,
    pending INTEGER NOT NULL,
    PRIMARY KEY (webhook, identifier, pending)
) STRICT, WITHOUT ROWID;
INSERT INTO "waits" VALUES('slack','thread',8589934593);
CREATE INDEX runs_by_start ON runs (started, run);
CREATE INDEX runs_by_user ON runs (user, started, run) WHERE user IS NOT NULL;
CREATE INDEX runs_by_conversation ON runs (conversation, started, run) WHERE conversation IS NOT NULL;
CREATE INDEX runs_by_wake ON runs (wake) WHERE wake IS NOT NULL;
CREATE INDEX runs_by_change ON runs (change);
CREATE INDEX sinks_by_feeder ON sinks (sink, feeder) WHERE feeder IS NOT NULL;
CREATE INDEX pending_by_age ON pending (at, run, since, id, person);
CREATE INDEX mail_to_take ON mail (webhook, identifier, at, id) WHERE taken_by IS NULL;
CREATE INDEX mail_by_expiry ON mail (expires);
CREATE INDEX timers_by_due ON timers (due, id);
CREATE INDEX timers_by_owner ON timers (conversation, user);
CREATE INDEX ended_runs_by_end ON ended_runs (ended);
CREATE INDEX runs_open ON runs (status, brain) WHERE status IN ('running', 'waiting', 'paused');
CREATE VIEW ended_figures AS SELECT
    key AS run,
    started,
    coalesce(json_extract(summary, '$.since'), at) AS ended,
    status,
    brain,
    user,
    CAST(json_extract(summary, '$.active') AS INTEGER) AS active,
    CAST(coalesce(json_extract(summary, '$.usage.input'), 0) AS INTEGER) AS input,
    CAST(coalesce(json_extract(summary, '$.usage.output'), 0) AS INTEGER) AS output,
    CAST(coalesce(json_extract(summary, '$.usage.cached'), 0) AS INTEGER) AS cached,
    CAST(coalesce(json_extract(summary, '$.cost.nanos'), 0) AS INTEGER) AS cost,
    json_extract(summary, '$.cost.currency') AS currency,
    coalesce(json_extract(summary, '$.cost.is_partial'), 0) AS partial,
    CASE status WHEN 'failed' THEN coalesce(json_extract(summary, '$.cause'), json_extract(summary, '$.why')) END AS cause,
    CASE WHEN json_array_length(summary, '$.models') > 1 THEN '' ELSE json_extract(summary, '$.models[0].model') END AS model
FROM runs WHERE status IN ('completed', 'failed', 'cancelled') AND json_valid(summary);
CREATE VIEW ended_model_figures AS SELECT
    runs.key AS run,
    used.key AS place,
    json_extract(used.value, '$.model') AS model,
    CAST(coalesce(json_extract(used.value, '$.usage.input'), 0) AS INTEGER) AS input,
    CAST(coalesce(json_extract(used.value, '$.usage.output'), 0) AS INTEGER) AS output,
    CAST(coalesce(json_extract(used.value, '$.usage.cached'), 0) AS INTEGER) AS cached,
    CAST(coalesce(json_extract(used.value, '$.nanos'), 0) AS INTEGER) AS cost,
    coalesce(json_extract(used.value, '$.is_partial'), 0) AS partial
FROM ended_runs JOIN runs ON runs.key = ended_runs.run JOIN json_each(runs.summary, '$.models') used
WHERE ended_runs.model = '';
CREATE TRIGGER run_began AFTER INSERT ON runs WHEN NEW.status IN ('completed', 'failed', 'cancelled') BEGIN
    INSERT INTO ended_runs SELECT * FROM ended_figures WHERE run = NEW.key;
    INSERT INTO ended_models SELECT * FROM ended_model_figures WHERE run = NEW.key;
END;
CREATE TRIGGER run_changed AFTER UPDATE OF status ON runs WHEN NEW.status IS NOT OLD.status BEGIN
    DELETE FROM ended_models WHERE run = NEW.key;
    DELETE FROM ended_runs WHERE run = NEW.key;
    INSERT INTO ended_runs SELECT * FROM ended_figures WHERE run = NEW.key;
    INSERT INTO ended_models SELECT * FROM ended_model_figures WHERE run = NEW.key;
END;
CREATE TRIGGER run_removed AFTER DELETE ON runs BEGIN
    DELETE FROM ended_models WHERE run = OLD.key;
    DELETE FROM ended_runs WHERE run = OLD.key;
END;
COMMIT;
