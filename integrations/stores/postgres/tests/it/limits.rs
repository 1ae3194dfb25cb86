//! Large stores, and texts that PostgreSQL handles in its own way.

use std::time::Duration;

use positronic_core::record::{
    Claim, Epoch, Gate, Path, Pending, PendingKind, RunId, Seq, SignalId, Status, Timer, Timestamp, Trigger, TriggerId,
    WaitSpec,
};
use positronic_core::store::prelude::*;
use positronic_core::store::{
    DueFilter, EventSearch, InboundWebhook, PendingFilter, PendingItem, PostOutcome, RunFilter, RunPages, StoreError,
    TimerChange, TimerFilter, TimerOwner, WaitingRun,
};
use positronic_postgres::PostgresStore;
use positronic_store_suite::Sample;
use serde_json::json;
use sqlx_core::connection::Connection as _;
use sqlx_core::executor::Executor as _;
use sqlx_core::row::Row as _;

use crate::server;

/// Texts that a column cannot hold as they are, or that sort differently in most languages.
const TEXTS: [&str; 8] = ["\0", "a\0b", "a\u{1}b", "a\u{1}\0", "Z", "a", "ä", "\u{1F600} \u{10FFFF}"];

#[tokio::test]
async fn texts_with_any_character_come_back_unchanged() {
    let Some(database) = server::database().await else { return };
    let store = database.open().await;
    let mut ids: Vec<RunId> = Vec::new();
    for text in TEXTS {
        let signal = SignalId::from(text);
        let mail = InboundWebhook {
            id: signal.clone(),
            webhook: text.to_owned(),
            identifier: text.to_owned(),
            payload: json!(text),
            actor: positronic_core::record::Actor::default(),
            at: Timestamp(1),
            expires: Timestamp(9),
            refusal: None,
        };
        assert_eq!(store.post(&mail).await, Ok(PostOutcome::New), "{text:?}");
        assert_eq!(store.mail(text, text, Timestamp(0), Timestamp(2)).await, Ok(Some(mail)));
        let wait = WaitSpec {
            fresh: false,
            webhook: text.to_owned(),
            identifier: text.to_owned(),
            person: false,
            prompt: Some(text.to_owned()),
            schema: std::sync::Arc::new(json!({})),
            expires: None,
            otherwise: None,
        };
        let pending = Pending {
            call: Path::parse("Loop/0.0").unwrap(),
            tool: text.to_owned(),
            arguments: std::sync::Arc::new(json!({ text: text })),
            since: Seq(0),
            kind: PendingKind::Answer { waits: vec![wait] },
        };
        let trigger = Trigger::once(TriggerId::new(text), text, Timestamp(5));
        let timer = Timer {
            trigger,
            brain: text.into(),
            options: json!(text),
            user: Some(text.to_owned()),
            conversation: Some(text.to_owned()),
            budget: None,
            origin: RunId::from(text),
            fired: 0,
            starter: None,
            scheduled: None,
        };
        let sample = Sample::new(text).says(text).hears(&signal).delivers(&signal).waits(vec![pending.clone()]);
        let sample = sample.changes(TimerChange::Set(timer.clone())).row(|row| {
            (row.brain, row.user, row.conversation) = (text.into(), Some(text.to_owned()), Some(text.to_owned()));
        });
        let (events, summary) = (sample.append.events.clone(), sample.append.index.summary.clone());
        let run = sample.appended(&store).await.run;

        assert_eq!(store.read(&run, Seq(0), 10).await.unwrap(), events);
        assert_eq!(store.run(&run).await.as_ref(), Ok(&summary));
        assert_eq!(store.accepted(&run, &signal).await, Ok(Some(Seq(1))));
        for filter in [
            RunFilter::builder().prefix(text).brain(text).build(),
            RunFilter::builder().user(text).conversation(text).build(),
        ] {
            assert_eq!(store.runs(&filter).await.unwrap(), std::slice::from_ref(&summary), "{filter:?}");
        }
        let filter = PendingFilter::builder().webhook((text.to_owned(), text.to_owned())).run(run.clone()).build();
        let about = WaitingRun::from(&summary);
        let item = PendingItem { run: run.clone(), brain: text.into(), at: summary.at, pending, about };
        assert_eq!(store.pending(&filter).await.unwrap(), [item]);
        let owner = TimerOwner::Conversation(text.to_owned());
        assert_eq!(store.timers(&TimerFilter::builder().owner(owner).build()).await.unwrap(), [timer]);
        let delivered = store.mailbox_entry(&signal).await.unwrap().unwrap().delivery;
        assert_eq!(delivered, positronic_core::store::DeliveryState::Delivered { run: run.clone(), seq: Seq(0) });
        ids.push(run);
    }

    let listed: Vec<_> = store.runs(&RunFilter::default()).await.unwrap().into_iter().map(|row| row.run).collect();
    ids.sort();
    ids.reverse();
    assert_eq!(listed, ids, "runs that start together are ordered by bytes");
    assert_eq!(store.search(&EventSearch::new("\0", 10)).await.unwrap().found.len(), 0, "JSON has its own escape");
    assert_eq!(store.search(&EventSearch::new("\\u0000", 10)).await.unwrap().found.len(), 6);
}

#[tokio::test]
async fn line_of_many_megabytes_comes_back_unchanged() {
    let Some(database) = server::database().await else { return };
    let store = database.open().await;
    let text: String = (0..2_000_000_u32).map(|number| char::from_u32(0x1F300 + number % 300).unwrap()).collect();
    let numbers = "1e400 0.1 1.0 12345678901234567890123";

    let sample = Sample::new("run-1").says(&text).says(numbers).snapshot(2, &text);
    let lines: Vec<_> = sample.append.events.iter().map(|event| event.to_json().unwrap()).collect();
    let run = sample.appended(&store).await.run;

    let read = store.read(&run, Seq(0), 10).await.unwrap();
    assert_eq!(read.iter().map(|event| event.to_json().unwrap()).collect::<Vec<_>>(), lines);
    assert_eq!(store.snapshot(&run).await.unwrap().unwrap().content.len(), text.len());
}

fn approval(call: u32) -> Pending {
    Pending {
        call: Path::parse(&format!("Loop/0.{call}")).unwrap(),
        tool: "refund".to_owned(),
        arguments: std::sync::Arc::new(json!({ "amount": 120 })),
        since: Seq(0),
        kind: PendingKind::Approval {
            gate: Gate { reason: "more than 100".to_owned(), valid_for: None, editable: true },
            expires: None,
        },
    }
}

/// A million is the same as ten thousand to an index; the test counts the rows that the server reads.
#[tokio::test]
async fn lists_and_the_queue_read_few_of_many_waiting_runs() {
    let Some(database) = server::database().await else { return };
    let store = database.open().await;
    let first =
        Sample::new("run-0").says("one").row(|row| (row.status, row.wake) = (Status::Waiting, Some(Timestamp(7))));
    _ = first.waits(vec![approval(0)]).appended(&store).await;
    let mut db = database.connect().await;
    // 10,000 runs that are due, and 60,000 that wait for a person or for later.
    db.execute(
        "INSERT INTO runs (run, next, epoch, changed, status, brain, started, at, wake, summary)
             SELECT 'run-' || n, 1, 0, 0, 'waiting', 'Sample', n, n,
                 CASE WHEN n <= 10000 THEN 7 WHEN n % 2 = 0 THEN 1000000000 END,
                 replace(r.summary, '\"run-0\"', '\"run-' || n || '\"')
             FROM generate_series(1, 70000) n, runs r WHERE r.run = 'run-0'",
    )
    .await
    .unwrap();
    db.execute(
        "INSERT INTO pending (key, at, run, since, call, person, brain, content)
             SELECT r.key, r.at, r.run, p.since, p.call, true, p.brain, p.content
             FROM runs r, pending p WHERE r.run <> 'run-0'",
    )
    .await
    .unwrap();
    for table in ["runs", "pending"] {
        db.execute(sqlx_core::sql_str::AssertSqlSafe(format!("VACUUM ANALYZE {table}"))).await.unwrap();
    }

    let lease = store.acquire_lease().await.unwrap();
    let reserve = Duration::from_secs(60);
    let filter =
        DueFilter::builder().now(Timestamp(9)).owner(lease.owner()).code("a").limit(10).reserve(reserve).build();
    assert_eq!(store.due(&filter).await.unwrap().len(), 10);
    let items = store.pending(&PendingFilter::builder().person(true).limit(100).build()).await.unwrap();
    assert_eq!(items.len(), 100);
    let after = PendingFilter::builder().person(true).after(items[99].cursor()).limit(100).build();
    assert_eq!(store.pending(&after).await.unwrap().len(), 100);
    let mut pages = RunPages::new(&store, RunFilter::builder().limit(1000).build());
    let mut runs = 0;
    while let Some(page) = pages.next().await.unwrap() {
        runs += page.len();
    }
    assert_eq!(runs, 1000);

    for (what, sql, most) in [
        ("the queue", "SELECT * FROM due_runs(9, 'w', 'a', NULL, false, 10, 60000)", 100),
        ("one run", "SELECT * FROM due_runs(9, 'w', 'a', '{run-9999}', false, 10, 60000)", 100),
        (
            "pending items",
            "SELECT * FROM pending WHERE person AND (at, run, since, call) > (30000, 'run-30000', 0, '')
            ORDER BY at, run, since, call LIMIT 100",
            200,
        ),
        (
            "runs",
            "SELECT * FROM runs WHERE (started, run) < (50000, 'run-50000')
            ORDER BY started DESC, run DESC LIMIT 100",
            200,
        ),
    ] {
        let read = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
                    WHERE relname IN ('runs', 'pending')";
        let mut transaction = db.begin().await.unwrap();
        let before: i64 = transaction.fetch_one(read).await.unwrap().get(0);
        let found = transaction.fetch_all(sql).await.unwrap().len();
        let after: i64 = transaction.fetch_one(read).await.unwrap().get(0);
        transaction.rollback().await.unwrap();
        let read = after - before;
        assert!(found > 0 && read <= most, "{what}: {found} found, {read} rows read");
    }
}

#[tokio::test]
async fn lease_that_is_not_renewed_lapses_and_frees_its_runs() {
    let Some(database) = server::database().await else { return };
    let mut options = database.options();
    options.lease_ttl = Duration::from_millis(300);
    let (store, brief) = (database.open().await, PostgresStore::with(options).await.unwrap());
    let (lease, dying) = (store.acquire_lease().await.unwrap(), brief.acquire_lease().await.unwrap());
    let claim = |epoch, owner: &str| Claim { epoch: Epoch(epoch), owner: owner.into(), released: false };
    let claimed = |sample: Sample, owner: &str| sample.claimed(1).row(|row| row.claim = Some(claim(1, owner)));
    let run = claimed(Sample::new("claimed"), dying.owner()).appended(&store).await;
    let late = Sample::new("late").says("one").appended(&store).await;
    let filter = |owner: &str| {
        DueFilter::builder().now(Timestamp(9)).owner(owner).code("a").limit(10).reserve(Duration::from_secs(60)).build()
    };
    assert_eq!(brief.due(&filter(dying.owner())).await.unwrap().len(), 1, "the other one is reserved");

    let lapsed = async { while store.is_lease_live(dying.owner()).await.unwrap() {} };
    tokio::time::timeout(Duration::from_secs(20), lapsed).await.unwrap();

    let refused = StoreError::LeaseLapsed { owner: dying.owner().to_owned() };
    assert_eq!(brief.renew_lease(dying.owner()).await, Err(refused));
    // The epoch is still that of the claim, so its worker is not fenced yet; but a claim of a lapsed lease is void.
    _ = run.by(1).says("kept").appended(&store).await;
    _ = claimed(late, dying.owner()).appended(&store).await;
    let due: Vec<_> = store.due(&filter(lease.owner())).await.unwrap();
    assert_eq!(due.iter().map(|due| due.summary.run.as_str()).collect::<Vec<_>>(), ["claimed", "late"]);
    assert_eq!(store.renew_lease(lease.owner()).await, Ok(()));
}
