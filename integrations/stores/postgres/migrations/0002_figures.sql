-- What figures count of a run that is over: one small row, so that figures of many runs read no summaries. A trigger writes it
-- when the status of a run changes, within the append.

CREATE TABLE ended_runs (
    key bigint PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    started bigint NOT NULL,
    ended bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    brain text COLLATE "C" NOT NULL,
    user_name text COLLATE "C",
    -- Microseconds; NULL for the runs of an earlier format.
    active bigint,
    input bigint NOT NULL,
    output bigint NOT NULL,
    cached bigint NOT NULL,
    -- Billionths of the currency's unit.
    cost bigint NOT NULL,
    currency text COLLATE "C",
    partial boolean NOT NULL,
    cause text COLLATE "C"
);
CREATE INDEX ended_runs_by_end ON ended_runs (ended);
-- Few of many runs are open.
CREATE INDEX runs_open ON runs (status, brain) WHERE status IN ('running', 'waiting', 'paused');

-- Reads a summary; NULL if it is no JSON. PostgreSQL reads no JSON with an escaped U+0000.
CREATE FUNCTION summary_json(p_summary text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN replace(p_summary, '\u0000', '\u0020')::jsonb;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- Reads a number that is not negative, or NULL.
CREATE FUNCTION summary_number(p_number jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(p_number) WHEN 'number' THEN least(trunc(p_number::numeric), 9223372036854775807)::bigint END
$$;

-- Writes the row of a run that is over.
CREATE FUNCTION add_ended_run(p_run runs) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_summary CONSTANT jsonb := summary_json(p_run.summary);
BEGIN
    IF v_summary IS NULL OR p_run.status NOT IN ('completed', 'failed', 'cancelled') THEN
        RETURN;
    END IF;
    INSERT INTO ended_runs (key, started, ended, status, brain, user_name, active, input, output, cached, cost, currency, partial, cause)
        VALUES (p_run.key, p_run.started, coalesce(summary_number(v_summary -> 'since'), p_run.at), p_run.status, p_run.brain,
            p_run.user_name, summary_number(v_summary -> 'active'),
            coalesce(summary_number(v_summary #> '{usage,input}'), 0), coalesce(summary_number(v_summary #> '{usage,output}'), 0),
            coalesce(summary_number(v_summary #> '{usage,cached}'), 0), coalesce(summary_number(v_summary #> '{cost,nanos}'), 0),
            v_summary #>> '{cost,currency}', coalesce(v_summary #> '{cost,is_partial}' = 'true', false),
            CASE p_run.status WHEN 'failed' THEN coalesce(v_summary ->> 'cause', v_summary ->> 'why') END);
END
$$;

CREATE FUNCTION run_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM ended_runs e WHERE e.key = NEW.key;
    END IF;
    PERFORM add_ended_run(NEW);
    RETURN NULL;
END
$$;
CREATE TRIGGER run_began AFTER INSERT ON runs FOR EACH ROW
    WHEN (NEW.status IN ('completed', 'failed', 'cancelled')) EXECUTE FUNCTION run_changed();
CREATE TRIGGER run_changed AFTER UPDATE OF status ON runs FOR EACH ROW
    WHEN (NEW.status <> OLD.status
        AND (NEW.status IN ('completed', 'failed', 'cancelled') OR OLD.status IN ('completed', 'failed', 'cancelled')))
    EXECUTE FUNCTION run_changed();

SELECT count(add_ended_run(r)) FROM runs r;
