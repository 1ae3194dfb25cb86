-- The models of runs that are over. A run whose answers all come from one model has its name, and one with several models an empty
-- one and a row for each of them, by its key.
ALTER TABLE ended_runs ADD COLUMN model TEXT;
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

DROP TRIGGER run_began;
DROP TRIGGER run_changed;
DROP TRIGGER run_removed;
DROP VIEW ended_figures;

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

-- Only for runs with several models.
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
