-- What figures count of a run that is over, by its key: one small row, so that figures of many runs read no summaries. The
-- triggers write it when the status of a run changes, within the append.
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
) STRICT;
CREATE INDEX ended_runs_by_end ON ended_runs (ended);

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
    CASE status WHEN 'failed' THEN coalesce(json_extract(summary, '$.cause'), json_extract(summary, '$.why')) END AS cause
FROM runs WHERE status IN ('completed', 'failed', 'cancelled') AND json_valid(summary);

INSERT INTO ended_runs SELECT * FROM ended_figures;

CREATE TRIGGER run_began AFTER INSERT ON runs WHEN NEW.status IN ('completed', 'failed', 'cancelled') BEGIN
    INSERT INTO ended_runs SELECT * FROM ended_figures WHERE run = NEW.key;
END;
CREATE TRIGGER run_changed AFTER UPDATE OF status ON runs WHEN NEW.status IS NOT OLD.status BEGIN
    DELETE FROM ended_runs WHERE run = NEW.key;
    INSERT INTO ended_runs SELECT * FROM ended_figures WHERE run = NEW.key;
END;
CREATE TRIGGER run_removed AFTER DELETE ON runs BEGIN
    DELETE FROM ended_runs WHERE run = OLD.key;
END;

-- Few of many runs are open.
CREATE INDEX runs_open ON runs (status, brain) WHERE status IN ('running', 'waiting', 'paused');
