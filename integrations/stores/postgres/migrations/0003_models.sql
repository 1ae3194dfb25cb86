-- The models of runs that are over. A run whose answers all come from one model has its name, and one with several models an empty
-- one and a row for each of them.

ALTER TABLE ended_runs ADD COLUMN model text COLLATE "C";
CREATE TABLE ended_models (
    key bigint NOT NULL REFERENCES ended_runs ON DELETE CASCADE,
    place integer NOT NULL,
    model text COLLATE "C" NOT NULL,
    input bigint NOT NULL,
    output bigint NOT NULL,
    cached bigint NOT NULL,
    -- Billionths of the currency's unit.
    cost bigint NOT NULL,
    partial boolean NOT NULL,
    PRIMARY KEY (key, place)
);

-- Writes the rows of a run that is over.
CREATE OR REPLACE FUNCTION add_ended_run(p_run runs) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_summary CONSTANT jsonb := summary_json(p_run.summary);
    v_models CONSTANT jsonb := v_summary -> 'models';
BEGIN
    IF v_summary IS NULL OR p_run.status NOT IN ('completed', 'failed', 'cancelled') THEN
        RETURN;
    END IF;
    INSERT INTO ended_runs
        (key, started, ended, status, brain, user_name, active, input, output, cached, cost, currency, partial, cause, model)
        VALUES (p_run.key, p_run.started, coalesce(summary_number(v_summary -> 'since'), p_run.at), p_run.status, p_run.brain,
            p_run.user_name, summary_number(v_summary -> 'active'),
            coalesce(summary_number(v_summary #> '{usage,input}'), 0), coalesce(summary_number(v_summary #> '{usage,output}'), 0),
            coalesce(summary_number(v_summary #> '{usage,cached}'), 0), coalesce(summary_number(v_summary #> '{cost,nanos}'), 0),
            v_summary #>> '{cost,currency}', coalesce(v_summary #> '{cost,is_partial}' = 'true', false),
            CASE p_run.status WHEN 'failed' THEN coalesce(v_summary ->> 'cause', v_summary ->> 'why') END,
            CASE WHEN v_models -> 1 IS NULL THEN v_models #>> '{0,model}' ELSE '' END);
    IF v_models -> 1 IS NOT NULL THEN
        INSERT INTO ended_models (key, place, model, input, output, cached, cost, partial)
            SELECT p_run.key, m.place, m.used ->> 'model', coalesce(summary_number(m.used #> '{usage,input}'), 0),
                coalesce(summary_number(m.used #> '{usage,output}'), 0), coalesce(summary_number(m.used #> '{usage,cached}'), 0),
                coalesce(summary_number(m.used -> 'nanos'), 0), coalesce(m.used -> 'is_partial' = 'true', false)
            FROM jsonb_array_elements(v_models) WITH ORDINALITY m (used, place);
    END IF;
END
$$;
