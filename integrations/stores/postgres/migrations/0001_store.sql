-- The tables of an event store. Text columns that hold ids and names are ordered by bytes, and escaped as `text.rs` says.

CREATE TABLE runs (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL UNIQUE,
    next bigint NOT NULL,
    epoch bigint NOT NULL,
    -- When the row changed, in units of 15 seconds of the server's clock: coarse, so that an append rarely changes an index.
    changed bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    brain text COLLATE "C" NOT NULL,
    user_name text COLLATE "C",
    conversation text COLLATE "C",
    after text COLLATE "C",
    started bigint NOT NULL,
    at bigint NOT NULL,
    -- When the run has work; the least number for a running one.
    wake bigint,
    -- The worker that has claimed the run and not released it, while its lease is live.
    owner text COLLATE "C",
    -- Until when the run is reserved for a worker, or paused after a failure if there is none.
    hold_owner text COLLATE "C",
    hold_until timestamptz,
    failures bigint NOT NULL DEFAULT 0,
    -- The codes that have refused the run.
    refusals text[] COLLATE "C" NOT NULL DEFAULT '{}',
    summary text COLLATE "C" NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX runs_by_start ON runs (started, run);
CREATE INDEX runs_by_user ON runs (user_name, started, run) WHERE user_name IS NOT NULL;
CREATE INDEX runs_by_conversation ON runs (conversation, started, run) WHERE conversation IS NOT NULL;
CREATE INDEX runs_by_predecessor ON runs (after) WHERE after IS NOT NULL;
CREATE INDEX runs_by_change ON runs (changed);
CREATE INDEX runs_by_wake ON runs (wake, started, run) WHERE wake IS NOT NULL AND owner IS NULL;
CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_by_hold ON runs (hold_owner) WHERE hold_owner IS NOT NULL;

CREATE TABLE events (
    key bigint NOT NULL,
    seq bigint NOT NULL,
    line text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, seq)
);

CREATE TABLE snapshots (
    key bigint PRIMARY KEY,
    next bigint NOT NULL,
    version bigint NOT NULL,
    content text COLLATE "C" NOT NULL
);

-- The saved parts of runs' prompts: the events from first on, before next.
CREATE TABLE saved_prompts (
    key bigint NOT NULL,
    next bigint NOT NULL,
    first bigint NOT NULL,
    version bigint NOT NULL,
    content text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, next)
);

-- The durable sinks of runs: the next event for each, and the worker that feeds it.
CREATE TABLE sinks (
    key bigint NOT NULL,
    sink text COLLATE "C" NOT NULL,
    next bigint NOT NULL,
    feeder text COLLATE "C",
    PRIMARY KEY (key, sink)
) WITH (fillfactor = 70);
CREATE INDEX sinks_by_feeder ON sinks (sink, feeder) WHERE feeder IS NOT NULL;

CREATE TABLE signals (
    key bigint NOT NULL,
    signal text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (key, signal)
);

-- The run's id and its brain's title are repeated here, so that the list reads no other table.
CREATE TABLE pending (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bigint NOT NULL,
    at bigint NOT NULL,
    run text COLLATE "C" NOT NULL,
    since bigint NOT NULL,
    call text COLLATE "C" NOT NULL,
    person boolean NOT NULL,
    brain text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL
);
CREATE INDEX pending_by_age ON pending (at, run, since, call);
CREATE INDEX pending_of_persons ON pending (at, run, since, call) WHERE person;
CREATE INDEX pending_of_run ON pending (key);

CREATE TABLE waits (
    webhook text COLLATE "C" NOT NULL,
    identifier text COLLATE "C" NOT NULL,
    pending bigint NOT NULL REFERENCES pending ON DELETE CASCADE,
    PRIMARY KEY (webhook, identifier, pending)
);
CREATE INDEX waits_of_pending ON waits (pending);

-- A delivered webhook keeps its id until it expires, without its content.
CREATE TABLE mail (
    id text COLLATE "C" PRIMARY KEY,
    webhook text COLLATE "C" NOT NULL,
    identifier text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    expires bigint NOT NULL,
    taken_by text COLLATE "C",
    taken_at bigint,
    content text COLLATE "C"
);
CREATE INDEX mail_to_take ON mail (webhook, identifier, at, id) WHERE taken_by IS NULL;
CREATE INDEX mail_by_expiry ON mail (expires);
CREATE INDEX mail_by_arrival ON mail (at, id);

-- Timers that start runs. The columns override the document.
CREATE TABLE timers (
    id text COLLATE "C" PRIMARY KEY,
    due bigint NOT NULL,
    fired bigint NOT NULL,
    conversation text COLLATE "C",
    user_name text COLLATE "C",
    origin text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL
);
CREATE INDEX timers_by_due ON timers (due, id);
CREATE INDEX timers_by_owner ON timers (conversation, user_name);

-- The contents of files, in chunks of 1 MiB; at is the time of their last storing.
CREATE TABLE blobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256 text COLLATE "C" NOT NULL UNIQUE,
    size bigint NOT NULL,
    at bigint NOT NULL
);
CREATE TABLE blob_chunks (
    blob bigint NOT NULL REFERENCES blobs ON DELETE CASCADE,
    number integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (blob, number)
);
-- Most files are compressed already.
ALTER TABLE blob_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The files that a run references.
CREATE TABLE run_blobs (
    key bigint NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    PRIMARY KEY (key, sha256)
);
CREATE INDEX run_blobs_by_content ON run_blobs (sha256);

-- The leases of workers, by the server's clock.
CREATE TABLE leases (
    owner text COLLATE "C" PRIMARY KEY,
    until timestamptz NOT NULL
);

-- Small documents beside the logs.
CREATE TABLE entries (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (kind, key)
);

-- The unit of runs.changed.
CREATE FUNCTION change_time() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) / 15)::bigint
$$;

-- Appends events to a run, with everything that belongs to them. Everything is checked before the first write, so that a
-- refusal is a row and not an error. Locks are taken in this order: the worker's lease, the run, its predecessor,
-- webhooks, timers.
CREATE FUNCTION append_events(
    p_run text, p_expected bigint, p_epoch bigint, p_claims bigint, p_lines text[],
    p_status text, p_brain text, p_user text, p_conversation text, p_after text,
    p_started bigint, p_at bigint, p_wake bigint, p_owner text, p_ends_deferral boolean,
    p_summary text,
    -- NULL: the items stay as they are.
    p_calls text[], p_sinces bigint[], p_persons boolean[], p_pending text[],
    -- Each wait names its item by its position, counted from 1.
    p_wait_items bigint[], p_webhooks text[], p_identifiers text[],
    p_deliveries text[],
    p_timers text[], p_timer_ids text[], p_timer_dues bigint[], p_timer_nexts bigint[], p_timer_fired bigint[],
    p_timer_conversations text[], p_timer_users text[], p_timer_origins text[], p_timer_contents text[],
    p_files text[], p_signals text[], p_signal_seqs bigint[],
    p_snapshot_next bigint, p_snapshot_version bigint, p_snapshot text,
    p_prompts_first bigint, p_prompts_next bigint, p_prompts_version bigint, p_prompts text,
    -- The durable sinks that the claiming worker feeds.
    p_sinks text[], p_feeder text,
    OUT refusal text, OUT name text, OUT number bigint, OUT taker text
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_key bigint;
    v_next bigint;
    v_epoch bigint;
    v_end CONSTANT bigint := p_expected + cardinality(p_lines);
    v_owner text;
BEGIN
    -- A claim under a lease that has lapsed is void at once: its run is due.
    IF p_owner IS NOT NULL AND (p_claims IS NOT NULL OR p_expected = 0) THEN
        SELECT l.owner INTO v_owner FROM leases l
            WHERE l.owner = p_owner AND l.until > clock_timestamp() FOR KEY SHARE;
    END IF;
    IF p_expected = 0 OR cardinality(p_deliveries) > 0 OR cardinality(p_timers) > 0 THEN
        SELECT r.key, r.next, r.epoch INTO v_key, v_next, v_epoch FROM runs r WHERE r.run = p_run FOR NO KEY UPDATE;
        IF coalesce(v_next, 0) <> p_expected THEN
            refusal := 'conflict';
            number := coalesce(v_next, 0);
            RETURN;
        END IF;
        IF p_epoch < v_epoch THEN
            refusal := 'fenced';
            number := v_epoch;
            RETURN;
        END IF;
        IF v_key IS NULL AND p_after IS NOT NULL THEN
            PERFORM FROM runs r WHERE r.run = p_after FOR KEY SHARE;
            IF NOT FOUND THEN
                refusal := 'no_run_before';
                RETURN;
            END IF;
        END IF;
        IF cardinality(p_deliveries) > 0 THEN
            PERFORM FROM mail m WHERE m.id = ANY (p_deliveries) ORDER BY m.id FOR UPDATE;
            SELECT 'taken', m.id, m.taken_at, m.taken_by INTO refusal, name, number, taker
                FROM mail m WHERE m.id = ANY (p_deliveries) AND m.taken_by IS NOT NULL
                ORDER BY array_position(p_deliveries, m.id) LIMIT 1;
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
        IF cardinality(p_timers) > 0 THEN
            PERFORM FROM timers t WHERE t.id = ANY (p_timer_ids) ORDER BY t.id FOR UPDATE;
            SELECT 'not_due', c.id INTO refusal, name
                FROM unnest(p_timers, p_timer_ids, p_timer_dues) WITH ORDINALITY c (change, id, due, place)
                WHERE c.change = 'fire'
                    AND NOT EXISTS (SELECT FROM timers t WHERE t.id = c.id AND t.due = c.due)
                ORDER BY c.place LIMIT 1;
            IF FOUND THEN
                RETURN;
            END IF;
        END IF;
    END IF;

    IF p_expected = 0 AND v_key IS NULL THEN
        INSERT INTO runs (run, next, epoch, changed, status, brain, user_name, conversation, after, started, at, wake, owner, summary)
            VALUES (p_run, v_end, coalesce(p_claims, 0), change_time(), p_status, p_brain, p_user, p_conversation, p_after,
                p_started, p_at, p_wake, v_owner, p_summary)
            ON CONFLICT (run) DO NOTHING
            RETURNING runs.key INTO v_key;
    ELSE
        UPDATE runs r SET
            next = v_end, epoch = greatest(r.epoch, p_claims), changed = change_time(), status = p_status, brain = p_brain,
            user_name = p_user, conversation = p_conversation, after = p_after, started = p_started, at = p_at,
            wake = p_wake, summary = p_summary,
            owner = CASE WHEN p_claims IS NOT NULL THEN v_owner WHEN p_owner IS NOT NULL THEN r.owner END,
            hold_owner = CASE WHEN NOT p_ends_deferral THEN r.hold_owner END,
            hold_until = CASE WHEN NOT p_ends_deferral THEN r.hold_until END,
            refusals = CASE WHEN p_ends_deferral THEN '{}' ELSE r.refusals END
            WHERE r.run = p_run AND r.next = p_expected AND (p_epoch IS NULL OR r.epoch <= p_epoch)
            RETURNING r.key INTO v_key;
    END IF;
    IF NOT FOUND THEN
        SELECT r.next, r.epoch INTO v_next, v_epoch FROM runs r WHERE r.run = p_run;
        refusal := CASE WHEN coalesce(v_next, 0) = p_expected AND p_epoch < v_epoch THEN 'fenced' ELSE 'conflict' END;
        number := CASE refusal WHEN 'fenced' THEN v_epoch ELSE coalesce(v_next, 0) END;
        RETURN;
    END IF;

    INSERT INTO events (key, seq, line)
        SELECT v_key, p_expected + l.place - 1, l.line FROM unnest(p_lines) WITH ORDINALITY l (line, place);

    IF p_calls IS NOT NULL THEN
        PERFORM replace_pending(v_key, p_run, p_brain, p_at, p_calls, p_sinces, p_persons, p_pending,
            p_wait_items, p_webhooks, p_identifiers);
    END IF;
    IF cardinality(p_deliveries) > 0 THEN
        UPDATE mail m SET taken_by = p_run, taken_at = p_expected, content = NULL WHERE m.id = ANY (p_deliveries);
    END IF;
    FOR i IN 1 .. cardinality(p_timers) LOOP
        IF p_timers[i] = 'set' THEN
            INSERT INTO timers AS t (id, due, fired, conversation, user_name, origin, content)
                VALUES (p_timer_ids[i], p_timer_dues[i], p_timer_fired[i], p_timer_conversations[i], p_timer_users[i],
                    p_timer_origins[i], p_timer_contents[i])
                ON CONFLICT (id) DO UPDATE SET due = excluded.due, fired = excluded.fired,
                    conversation = excluded.conversation, user_name = excluded.user_name, origin = excluded.origin,
                    content = excluded.content;
        ELSIF p_timers[i] = 'fire' AND p_timer_nexts[i] IS NOT NULL THEN
            UPDATE timers t SET due = p_timer_nexts[i], fired = t.fired + 1 WHERE t.id = p_timer_ids[i];
        ELSE
            DELETE FROM timers t WHERE t.id = p_timer_ids[i];
        END IF;
    END LOOP;
    IF cardinality(p_files) > 0 THEN
        INSERT INTO run_blobs (key, sha256) SELECT v_key, f FROM unnest(p_files) f ON CONFLICT DO NOTHING;
    END IF;
    IF cardinality(p_signals) > 0 THEN
        INSERT INTO signals (key, signal, seq)
            SELECT v_key, s.signal, min(s.seq) FROM unnest(p_signals, p_signal_seqs) s (signal, seq) GROUP BY s.signal
            ON CONFLICT DO NOTHING;
    END IF;
    IF p_snapshot IS NOT NULL THEN
        INSERT INTO snapshots AS s (key, next, version, content)
            VALUES (v_key, p_snapshot_next, p_snapshot_version, p_snapshot)
            ON CONFLICT (key) DO UPDATE SET next = excluded.next, version = excluded.version, content = excluded.content;
    END IF;
    IF p_prompts IS NOT NULL THEN
        -- A part that begins with the first event replaces all others.
        IF p_prompts_first = 0 THEN
            DELETE FROM saved_prompts s WHERE s.key = v_key;
        END IF;
        INSERT INTO saved_prompts AS s (key, next, first, version, content)
            VALUES (v_key, p_prompts_next, p_prompts_first, p_prompts_version, p_prompts)
            ON CONFLICT (key, next) DO UPDATE SET
                first = excluded.first, version = excluded.version, content = excluded.content;
    END IF;
    IF p_feeder IS NOT NULL AND cardinality(p_sinks) > 0 THEN
        INSERT INTO sinks (key, sink, next, feeder) SELECT DISTINCT v_key, s, 0, p_feeder FROM unnest(p_sinks) s
            ON CONFLICT (key, sink) DO UPDATE SET feeder = excluded.feeder;
    END IF;
END
$$;

-- Replaces the pending items of a run. An unchanged item stays as it is, a changed one keeps its time.
CREATE FUNCTION replace_pending(
    p_key bigint, p_run text, p_brain text, p_at bigint,
    p_calls text[], p_sinces bigint[], p_persons boolean[], p_pending text[],
    p_wait_items bigint[], p_webhooks text[], p_identifiers text[]
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF cardinality(p_calls) = 0 THEN
        DELETE FROM pending p WHERE p.key = p_key;
        RETURN;
    END IF;
    WITH new AS MATERIALIZED (
        SELECT * FROM unnest(p_calls, p_sinces, p_persons, p_pending) WITH ORDINALITY n (call, since, person, content, place)
    ), old AS MATERIALIZED (
        SELECT * FROM pending p WHERE p.key = p_key
    ), gone AS (
        DELETE FROM pending p USING old o WHERE p.id = o.id AND NOT EXISTS (
            SELECT FROM new n WHERE n.call = o.call AND n.since = o.since AND n.content = o.content
        )
    ), added AS (
        INSERT INTO pending (key, at, run, since, call, person, brain, content)
            SELECT p_key, coalesce(o.at, p_at), p_run, n.since, n.call, n.person, p_brain, n.content
            FROM new n LEFT JOIN old o ON o.call = n.call AND o.since = n.since
            WHERE o.content IS DISTINCT FROM n.content
            RETURNING pending.id, pending.call, pending.since
    )
    INSERT INTO waits (webhook, identifier, pending)
        SELECT w.webhook, w.identifier, a.id
        FROM unnest(p_wait_items, p_webhooks, p_identifiers) w (item, webhook, identifier)
        JOIN new n ON n.place = w.item
        JOIN added a ON a.call = n.call AND a.since = n.since
        ON CONFLICT DO NOTHING;
END
$$;

-- Stores a webhook, and deletes some expired ones. A known one is returned with its delivery.
CREATE FUNCTION post_mail(
    p_id text, p_webhook text, p_identifier text, p_at bigint, p_expires bigint, p_content text,
    OUT is_new boolean, OUT taken_by text, OUT taken_at bigint
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM mail m WHERE m.id IN (SELECT e.id FROM mail e WHERE e.expires <= p_at LIMIT 1000 FOR UPDATE SKIP LOCKED);
    INSERT INTO mail (id, webhook, identifier, at, expires, content)
        VALUES (p_id, p_webhook, p_identifier, p_at, p_expires, p_content)
        ON CONFLICT DO NOTHING;
    is_new := FOUND;
    IF NOT is_new THEN
        SELECT m.taken_by, m.taken_at INTO taken_by, taken_at FROM mail m WHERE m.id = p_id;
    END IF;
END
$$;

-- Removes a run that is over and that no run continues, with everything that belongs to it.
CREATE FUNCTION remove_run(p_run text) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_key bigint;
    v_status text;
BEGIN
    SELECT r.key, r.status INTO v_key, v_status FROM runs r WHERE r.run = p_run FOR UPDATE;
    -- After the lock, so that it sees a run that has begun to continue this one meanwhile.
    IF v_key IS NULL OR v_status NOT IN ('completed', 'failed', 'cancelled')
        OR EXISTS (SELECT FROM runs r WHERE r.after = p_run) THEN
        RETURN false;
    END IF;
    DELETE FROM events e WHERE e.key = v_key;
    DELETE FROM pending p WHERE p.key = v_key;
    DELETE FROM snapshots s WHERE s.key = v_key;
    DELETE FROM saved_prompts s WHERE s.key = v_key;
    DELETE FROM sinks s WHERE s.key = v_key;
    DELETE FROM signals s WHERE s.key = v_key;
    DELETE FROM run_blobs b WHERE b.key = v_key;
    DELETE FROM runs r WHERE r.key = v_key;
    RETURN true;
END
$$;

-- Ends a lease, or with NULL all that have lapsed, and frees the runs that their owners have claimed or reserved.
CREATE FUNCTION end_leases(p_owner text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_ended text[];
BEGIN
    WITH ended AS (
        DELETE FROM leases l WHERE l.owner IN (
            SELECT o.owner FROM leases o
            WHERE CASE WHEN p_owner IS NULL THEN o.until <= clock_timestamp() ELSE o.owner = p_owner END
            FOR UPDATE SKIP LOCKED
        ) RETURNING l.owner
    )
    SELECT array_agg(e.owner) INTO v_ended FROM ended e;
    IF v_ended IS NULL THEN
        RETURN;
    END IF;
    -- After the deletion, so that these statements see the claims that were committed before it.
    UPDATE runs r SET owner = NULL WHERE r.owner = ANY (v_ended);
    UPDATE runs r SET hold_owner = NULL, hold_until = NULL
        WHERE r.hold_owner = ANY (v_ended);
END
$$;

-- Reserves runs with work that no live worker has claimed, earliest first, and returns them. The runs that another call
-- is reserving are skipped.
CREATE FUNCTION due_runs(
    p_now bigint, p_owner text, p_code text, p_runs text[], p_paused boolean, p_limit bigint, p_reserve bigint
) RETURNS TABLE (summary text, failures bigint) LANGUAGE plpgsql SET search_path FROM CURRENT
-- The list of runs decides about the plan.
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    IF EXISTS (SELECT FROM leases l WHERE l.until <= clock_timestamp()) THEN
        PERFORM end_leases(NULL);
    END IF;
    RETURN QUERY WITH free AS (
        SELECT r.key FROM runs r
        WHERE r.wake <= p_now AND r.wake IS NOT NULL AND r.owner IS NULL
            AND (p_runs IS NULL OR r.run = ANY (p_runs))
            -- Only the row decides, since a row that has changed meanwhile is checked again without other tables.
            AND (r.hold_until IS NULL OR r.hold_until <= clock_timestamp() OR r.hold_owner IS NULL AND p_paused)
            AND NOT r.refusals && ARRAY[p_code, p_owner]
        ORDER BY r.wake, r.started, r.run
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ), held AS (
        UPDATE runs r SET hold_owner = p_owner, hold_until = clock_timestamp() + p_reserve * interval '1 millisecond'
        FROM free f WHERE r.key = f.key
        RETURNING r.summary, r.failures, r.wake, r.started, r.run
    )
    SELECT h.summary, h.failures FROM held h ORDER BY h.wake, h.started, h.run;
END
$$;

-- Sets the next event of a run for a sink. With p_done, that worker stops feeding it if it has all events now.
CREATE FUNCTION set_sink_position(p_run text, p_sink text, p_next bigint, p_done text)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    v_key bigint;
    v_end bigint;
BEGIN
    IF p_done IS NULL THEN
        UPDATE sinks s SET next = p_next
            WHERE s.key = (SELECT r.key FROM runs r WHERE r.run = p_run) AND s.sink = p_sink AND s.next < p_next;
        RETURN;
    END IF;
    -- No append can pass between the look at the end of the log and the change.
    SELECT r.key, r.next INTO v_key, v_end FROM runs r WHERE r.run = p_run FOR SHARE;
    UPDATE sinks s SET next = greatest(s.next, p_next),
        feeder = CASE WHEN s.feeder = p_done AND p_next >= v_end THEN NULL ELSE s.feeder END
        WHERE s.key = v_key AND s.sink = p_sink;
END
$$;

-- Makes a worker feed runs of workers without a live lease to a sink, and returns these runs. It looks up each feeder
-- once, however many runs it feeds.
CREATE FUNCTION take_sink(p_sink text, p_owner text, p_limit bigint)
RETURNS TABLE (run text) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RETURN QUERY WITH RECURSIVE feeders (feeder) AS (
        SELECT min(s.feeder) FROM sinks s WHERE s.sink = p_sink AND s.feeder IS NOT NULL
        UNION ALL
        SELECT (SELECT min(s.feeder) FROM sinks s WHERE s.sink = p_sink AND s.feeder > f.feeder)
            FROM feeders f WHERE f.feeder IS NOT NULL
    ), lost AS (
        SELECT f.feeder FROM feeders f WHERE f.feeder IS NOT NULL
            AND NOT EXISTS (SELECT FROM leases l WHERE l.owner = f.feeder AND l.until > clock_timestamp())
    ), free AS (
        SELECT s.key FROM lost l JOIN sinks s ON s.sink = p_sink AND s.feeder = l.feeder
        LIMIT p_limit
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ), taken AS (
        UPDATE sinks s SET feeder = p_owner FROM free f WHERE s.key = f.key AND s.sink = p_sink
        RETURNING s.key
    )
    SELECT r.run FROM taken t JOIN runs r ON r.key = t.key;
END
$$;
