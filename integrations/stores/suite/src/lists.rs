//! Summaries, pending items, search and removal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{
    BudgetRequest, Gate, LimitKind, ModelUse, Money, OlderAnswer, Path, Pending, PendingKind, RunCost, RunId,
    RunSummary, Seq, Start, Starter, Status, Timestamp, Usage, WaitSpec,
};
use positronic_core::store::{
    EventMatch, EventSearch, EventStore, PendingFilter, PendingItem, PendingPages, RunCounts, RunCursor, RunFilter,
    RunPages, RunSums, StoreError,
};
use serde_json::json;

use super::Sample;

/// Makes a pending approval.
pub(super) fn approval(call: &str, since: u64) -> Pending {
    Pending {
        call: Path::parse(call).unwrap(),
        tool: "refund".to_owned(),
        arguments: Arc::new(json!({ "amount": 120 })),
        since: Seq(since),
        kind: PendingKind::Approval {
            gate: Gate { reason: "more than 100".to_owned(), valid_for: None, editable: true },
            expires: Some(Timestamp(77)),
        },
    }
}

/// Makes answers that are older than their questions.
fn older_answers(count: i64) -> Vec<OlderAnswer> {
    let answer = |call| OlderAnswer {
        call: Path::parse(&format!("Loop/0.{call}")).unwrap(),
        tool: "ask".to_owned(),
        received: Timestamp(call),
        seq: Seq(2),
    };
    (0..count).map(answer).collect()
}

/// Makes a pending request for more than a limit allows.
fn more(at: &str, since: u64) -> Pending {
    let kind = PendingKind::Budget(BudgetRequest {
        kind: LimitKind::Money,
        limit: 9,
        used: 10,
        shared: true,
        expires: Some(Timestamp(78)),
    });
    Pending { tool: String::new(), arguments: Arc::default(), kind, ..approval(at, since) }
}

fn answer(call: &str, since: u64, waits: &[(&str, &str, bool)]) -> Pending {
    let wait = |(webhook, identifier, person): &(&str, &str, bool)| WaitSpec {
        webhook: (*webhook).to_owned(),
        identifier: (*identifier).to_owned(),
        fresh: false,
        person: *person,
        prompt: Some("Has it arrived?".to_owned()),
        schema: Arc::new(json!({ "type": "string" })),
        expires: None,
        otherwise: None,
    };
    Pending { kind: PendingKind::Answer { waits: waits.iter().map(wait).collect() }, ..approval(call, since) }
}

/// The summary is the one of the last append, in every field.
pub async fn summary_follows_the_appends<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let mut sample = Sample::new("run-1").says("one").appended(&store).await;
    assert_eq!(other.run(&sample.run).await.as_ref(), Ok(&sample.append.index.summary));

    sample = sample.says("two").row(|row| {
        row.brain = "Other".into();
        row.user = Some("ann".to_owned());
        row.tags = vec!["urgent".to_owned(), "a \"b\" 'c' 木".to_owned()];
        row.conversation = Some("thread".to_owned());
        row.forked_from = Some((RunId::from("run-0"), Seq(7)));
        row.status = Status::Waiting;
        row.why = Some("for\0Ann".to_owned());
        row.started = Timestamp(5);
        row.wake = Some(Timestamp(9));
        row.usage = Usage { input: 1, output: 2, cached: 3, cache_write: 5, cache_write_1h: 6, reasoning: 4 };
    });
    sample = sample.appended(&store).await;

    assert_eq!(other.run(&sample.run).await.as_ref(), Ok(&sample.append.index.summary));
    for filter in [
        RunFilter::builder().brain("Other").build(),
        RunFilter::builder().user("ann").build(),
        RunFilter::builder().tag("urgent").build(),
        RunFilter::builder().tag("a \"b\" 'c' 木").build(),
        RunFilter::builder().status(vec![Status::Waiting]).build(),
        RunFilter::builder().due(Timestamp(9)).build(),
    ] {
        let rows = other.runs(&filter).await.unwrap();
        assert_eq!(rows, [sample.append.index.summary.clone()], "{filter:?}");
    }
    assert_eq!(other.runs(&RunFilter::builder().brain("Sample").build()).await, Ok(Vec::new()));
}

/// The models of the runs in the case of filters: none, one, or two.
fn models(number: i64) -> Vec<ModelUse> {
    let used = |model: &str| ModelUse {
        model: model.into(),
        usage: Usage { input: 7, ..Usage::default() },
        known: Money::of_nanos(3),
        is_partial: number % 2 == 0,
    };
    match number % 7 {
        2 => vec![used("anthropic/one 木")],
        3 => vec![used("anthropic/one 木"), used("openrouter/openrouter/mini")],
        4 => vec![used("local")],
        _ => Vec::new(),
    }
}

/// Lists contain what [`RunFilter::passes`] accepts, the run that started last first. Counts and sums are those of such a list.
pub async fn runs_are_listed_by_any_filter<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let (mut rows, mut waiting) = (Vec::<RunSummary>::new(), BTreeSet::new());
    for number in 0_i64..60 {
        let name = if number % 10 == 3 { format!("other-{number}") } else { format!("run-{number}") };
        let sample = Sample::new(&name).says("one").row(|row| {
            row.status = Status::ALL[usize::try_from(number % 6).unwrap()];
            row.brain = if number % 4 == 0 { "Support" } else { "Sales" }.into();
            row.user = (number % 3 != 0).then(|| format!("user-{}", number % 3));
            row.started = Timestamp(number % 17);
            row.at = Timestamp(100 + number % 23);
            row.wake = (number % 5 != 0).then_some(Timestamp(number));
            row.mail = row.status == Status::Waiting && number % 7 < 3;
            row.tools = Arc::new(if number % 9 == 4 {
                vec!["look".to_owned(), "pay \"all\" 木".to_owned()]
            } else {
                Vec::new()
            });
            let known = Money::of_nanos(u64::try_from(number).unwrap() * 100);
            let currency = Some("USD".into());
            row.cost = (number % 3 == 1).then_some(RunCost { known, currency, is_partial: number % 2 == 0 });
            let currency = (number % 5 != 0).then(|| "EUR".into());
            row.cost =
                if number % 6 == 5 { Some(RunCost { known, currency, is_partial: true }) } else { row.cost.take() };
            let tokens = u64::try_from(number).unwrap();
            row.usage = Usage { input: tokens, output: 1, cached: tokens / 2, reasoning: 1, ..Usage::default() };
            row.models = Arc::from(models(number));
            // Without it, the summary is one of an earlier version, whose costs are unknown.
            row.active = (number % 4 != 3).then_some(Duration::ZERO);
        });
        let sample = match number % 8 {
            1 => sample.waits(vec![approval("Loop/0.0", 0)]),
            2 => sample.waits(vec![answer("Loop/0.0", 0, &[("slack", "thread", false)])]),
            _ => sample,
        };
        waiting.extend((number % 8 == 1).then(|| sample.append.index.summary.run.clone()));
        rows.push(sample.appended(&store).await.append.index.summary);
    }
    rows.sort_by(|a, b| (b.started, &b.run).cmp(&(a.started, &a.run)));
    let tenth = rows[9].cursor();

    let builder = RunFilter::builder;
    for filter in [
        RunFilter::default(),
        builder().limit(7).build(),
        builder().limit(0).build(),
        builder().prefix("other-").build(),
        builder().prefix("run-1").build(),
        builder().prefix("%").build(),
        builder().ends(vec!["9".to_owned()]).build(),
        builder().ends(vec!["-7".to_owned(), "19".to_owned(), "other-23".to_owned(), "nothing".to_owned()]).build(),
        builder().ends(vec!["%".to_owned()]).build(),
        builder().tool("look").build(),
        builder().tool("pay \"all\" 木").limit(2).build(),
        builder().tool("loo").build(),
        builder().model("anthropic/one 木").build(),
        builder().model("one 木").brain("Sales").build(),
        builder().model("openrouter/mini").limit(3).build(),
        builder().model("mini").build(),
        builder().model("local").build(),
        builder().min_cost(Money::of_nanos(2500)).build(),
        builder().max_cost(Money::of_nanos(2500)).brain("Sales").build(),
        builder().min_cost(Money::of_nanos(1)).max_cost(Money::of_nanos(1900)).build(),
        builder().status(vec![Status::Paused]).build(),
        builder().status(vec![Status::Paused, Status::Failed]).limit(5).build(),
        builder().brain("Support").build(),
        builder().brain("Support").user("user-1").build(),
        builder().user("nobody").build(),
        builder().since(Timestamp(110)).build(),
        builder().since(Timestamp(105)).before(Timestamp(110)).build(),
        builder().before(Timestamp(110)).status(vec![Status::Completed]).build(),
        builder().due(Timestamp(30)).build(),
        builder().due(Timestamp(0)).build(),
        builder().due(Timestamp(30)).brain("Sales").limit(3).build(),
        builder().after(tenth.clone()).limit(4).build(),
        builder().after(tenth.clone()).brain("Sales").build(),
        builder().after(RunCursor { started: tenth.started, run: RunId::new("zzz") }).limit(9).build(),
        builder().after(rows[59].cursor()).build(),
        builder().person(true).build(),
        builder().person(true).user("user-1").limit(2).build(),
        builder().person(true).after(tenth.clone()).brain("Sales").build(),
    ] {
        let passing = rows.iter().filter(|row| filter.passes(row) && (!filter.person || waiting.contains(&row.run)));
        let passing = passing.take(filter.limit.unwrap_or(usize::MAX));
        let passing: Vec<_> = passing.map(|row| &row.run).collect();
        let listed = store.runs(&filter).await.unwrap();
        assert_eq!(listed.iter().map(|row| &row.run).collect::<Vec<_>>(), passing, "{filter:?}");

        let mut all = filter.clone();
        (all.after, all.limit) = (None, None);
        let passing = rows.iter().filter(|row| all.passes(row) && (!all.person || waiting.contains(&row.run)));
        let (mut counts, mut sums) = (RunCounts::default(), RunSums::default());
        passing.for_each(|row| {
            counts.add(row.status, 1);
            sums.add(row);
        });
        assert_eq!(store.counts(&filter).await, Ok(counts), "{filter:?}");
        assert_eq!(store.sums(&filter).await, Ok(sums), "{filter:?}");
    }
}

/// Lists of pending items contain what [`PendingFilter::passes`] accepts, the oldest first.
pub async fn pending_items_are_listed_by_any_filter<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let mut waiters = Vec::new();
    for number in 0_i64..20 {
        let slack = format!("thread-{}", number % 3);
        let pending = match number % 5 {
            0 => vec![approval("Loop/0.0", 3), more("Loop", 4)],
            1 => vec![answer("Loop/0.0", 2, &[("slack", &slack, false), ("email", "ann", false)])],
            2 => vec![answer("Loop/0.0", 2, &[("reply", &slack, true)]), approval("Loop/0.1/Ask/1.0", 5)],
            3 => vec![answer("Loop/0.0", 1, &[("slack", &slack, false), ("slack", &slack, true)])],
            _ => Vec::new(),
        };
        let sample = Sample::new(&format!("run-{number}")).says("one").row(|row| {
            row.brain = format!("Brain {}", number % 2).into();
            row.user = (number % 3 != 0).then(|| format!("user-{}", number % 3));
            row.at = Timestamp(number % 7);
            row.starter =
                Starter::of(&Start { actor: format!("starter-{number}").into(), ..Start::default() }).map(Arc::new);
            row.older_answers = Arc::new(older_answers(number % 2));
        });
        let sample = sample.waits(pending.clone()).appended(&store).await;
        let row = sample.append.index.summary;
        let (run, brain, at) = (&row.run, &row.brain, row.at);
        let waiter =
            |pending| PendingItem { run: run.clone(), brain: brain.clone(), at, pending, about: (&row).into() };
        waiters.extend(pending.into_iter().map(waiter));
    }
    waiters.sort_by(|a, b| (a.at, &a.run, a.pending.since).cmp(&(b.at, &b.run, b.pending.since)));
    let (second, last) = (waiters[1].cursor(), waiters[waiters.len() - 1].cursor());

    let builder = PendingFilter::builder;
    let webhook = |name: &str, identifier: &str| (name.to_owned(), identifier.to_owned());
    for filter in [
        PendingFilter::default(),
        builder().limit(4).build(),
        builder().run(RunId::from("run-10")).build(),
        builder().run(RunId::from("none")).build(),
        builder().person(true).build(),
        builder().person(true).limit(3).build(),
        builder().webhook(webhook("slack", "thread-1")).build(),
        builder().webhook(webhook("slack", "thread-0")).person(true).build(),
        builder().webhook(webhook("email", "ann")).run(RunId::from("run-1")).build(),
        builder().webhook(webhook("slack", "")).build(),
        builder().after(second.clone()).build(),
        builder().after(second).person(true).limit(3).build(),
        builder().after(last).build(),
        builder().user("user-1").build(),
        builder().user("user-2").person(true).limit(2).build(),
        builder().user("nobody").build(),
    ] {
        let passing = waiters.iter().filter(|waiter| filter.passes(waiter)).take(filter.limit.unwrap_or(usize::MAX));
        let listed = store.pending(&filter).await.unwrap();
        assert_eq!(listed, passing.cloned().collect::<Vec<_>>(), "{filter:?}");
    }
}

/// Pages of any size list every run and every pending item once, in the order of the whole list, also if a row of an
/// earlier page is removed meanwhile.
pub async fn lists_are_read_in_pages<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let calls: Vec<_> = (0..12).map(|call| approval(&format!("Loop/0.{call}"), 2)).collect();
    for number in 0_i64..25 {
        let sample = Sample::new(&format!("run-{number}")).says("one").row(|row| {
            row.status = Status::Completed;
            (row.started, row.at) = (Timestamp(number / 7), Timestamp(number / 4));
        });
        _ = sample.waits(calls.clone()).appended(&store).await;
    }
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    let items = store.pending(&PendingFilter::default()).await.unwrap();
    assert_eq!((runs.len(), items.len()), (25, 300));
    assert!(items.is_sorted_by_key(PendingItem::cursor) && runs.is_sorted_by_key(RunSummary::cursor));

    for size in [1, 7, 24, 25, 26] {
        let (mut paged, mut filter) = (Vec::new(), RunFilter::builder().limit(size).build());
        loop {
            let page = store.runs(&filter).await.unwrap();
            assert_eq!(page.len(), size.min(runs.len() - paged.len()));
            let Some(last) = page.last() else { break };
            filter.after = Some(last.cursor());
            paged.extend(page);
        }
        assert_eq!(paged, runs, "{size} at once");
    }
    let (mut paged, mut filter) = (Vec::new(), PendingFilter::builder().limit(11).build());
    while let Some(last) = {
        let page = store.pending(&filter).await.unwrap();
        paged.extend(page);
        paged.last().filter(|last| filter.after != Some(last.cursor()))
    } {
        filter.after = Some(last.cursor());
    }
    assert_eq!(paged, items);

    let mut pages = PendingPages::new(&store, PendingFilter::builder().limit(290).build());
    let mut read = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        read.extend(page);
    }
    assert_eq!(read, items[..290]);
    let mut filter = RunFilter::builder().limit(5).build();
    let first = store.runs(&filter).await.unwrap();
    filter.after = first.last().map(RunSummary::cursor);
    assert_eq!(store.remove(std::slice::from_ref(&first[4].run)).await, Ok(1));
    assert_eq!(store.runs(&filter).await.unwrap(), runs[5..10]);
    assert_eq!(RunPages::new(&store, RunFilter::default()).all().await.unwrap().len(), 24);
}

/// Pending items stay until an append replaces them; an item that is still pending keeps its time.
pub async fn pending_items_are_replaced_and_keep_their_age<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let listed = async || {
        let waiters = store.pending(&PendingFilter::default()).await.unwrap();
        waiters.into_iter().map(|waiter| (waiter.at.0, waiter.pending)).collect::<Vec<_>>()
    };
    let by_webhook = async || {
        let filter = PendingFilter::builder().webhook(("slack".to_owned(), "thread".to_owned())).build();
        store.pending(&filter).await.unwrap().len()
    };
    let at = |moment| move |row: &mut RunSummary| row.at = Timestamp(moment);
    let (one, two) = (approval("Loop/0.0", 1), answer("Loop/0.1", 2, &[("slack", "thread", false)]));
    let edited = Pending { tool: "another".to_owned(), ..one.clone() };
    let again = Pending { since: Seq(9), ..one.clone() };

    let run = Sample::new("run-1").says("one").row(at(10)).waits(vec![one.clone(), two.clone()]);
    let run = run.appended(&store).await;
    let run = run.says("two").row(at(20)).appended(&store).await;
    assert_eq!(listed().await, [(10, one), (10, two.clone())]);
    assert_eq!(by_webhook().await, 1);

    let run = run.says("three").row(at(30)).waits(vec![edited.clone(), two]).appended(&store).await;
    assert_eq!(listed().await.first(), Some(&(10, edited)));

    let run = run.says("four").row(at(40)).waits(vec![again.clone()]).appended(&store).await;
    assert_eq!(listed().await, [(40, again)]);
    assert_eq!(by_webhook().await, 0);

    let run = run.says("five").row(at(50)).waits(Vec::new()).appended(&store).await;
    assert_eq!(listed().await, []);

    let webhook = answer("Loop/1.0", 5, &[("slack", "thread", false)]);
    let run = run.says("six").waits(vec![webhook]).appended(&store).await;
    assert_eq!(by_webhook().await, 1);
    let run = run.says("seven").waits(Vec::new()).appended(&store).await;
    _ = run.says("eight").waits(vec![approval("Loop/2.0", 7)]).appended(&store).await;
    assert_eq!((listed().await.len(), by_webhook().await), (1, 0));
}

/// A search finds the events whose JSON contains a text, ignoring case, with any special characters.
pub async fn search_ignores_case<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let started = |moment| move |row: &mut RunSummary| row.started = Timestamp(moment);
    let old = Sample::new("run-9").says("An Invoice").says("nothing").says("invoices").row(started(1));
    let new = Sample::new("run-1").says("100% of the INVOICE_ is größer").row(started(2));
    let (old_lines, new_lines): (Vec<_>, Vec<_>) = (
        old.append.events.iter().map(|event| event.to_json().unwrap()).collect(),
        new.append.events.iter().map(|event| event.to_json().unwrap()).collect(),
    );
    let (old, new) = (old.appended(&store).await, new.appended(&store).await);
    let of_old =
        |seq: u64| EventMatch::new(old.run.clone(), Seq(seq), old_lines[usize::try_from(seq).unwrap()].clone());
    let of_new = EventMatch::new(new.run.clone(), Seq(0), new_lines[0].clone());

    assert_eq!(
        store.search(&EventSearch::new("iNvOiCe", 10)).await.unwrap().found,
        [of_new.clone(), of_old(0), of_old(2)]
    );
    assert_eq!(store.search(&EventSearch::new("invoice", 2)).await.unwrap().found, [of_new.clone(), of_old(0)]);
    assert_eq!(store.search(&EventSearch::new("invoice", 0)).await.unwrap().found, []);
    assert_eq!(store.search(&EventSearch::new("GRÖSSER", 10)).await.unwrap().found, []);
    assert_eq!(store.search(&EventSearch::new("GRÖßER", 10)).await.unwrap().found, std::slice::from_ref(&of_new));
    assert_eq!(store.search(&EventSearch::new("100% OF", 10)).await.unwrap().found, std::slice::from_ref(&of_new));
    assert_eq!(store.search(&EventSearch::new("invoice_", 10)).await.unwrap().found, [of_new]);
    assert_eq!(store.search(&EventSearch::new("'; DROP TABLE events", 10)).await.unwrap().found, []);
}

/// A search finds events of the runs that match its filter, once per run if it says so, and ends after about as many events as
/// it may read, with the place where it continues.
pub async fn search_is_narrowed_and_continued<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    for number in 0_i64..6 {
        let sample = Sample::new(&format!("run-{number}")).says("tea").says("no").says("more tea").row(|row| {
            row.user = Some(format!("user-{}", number % 2));
            row.started = Timestamp(number);
        });
        _ = sample.appended(&store).await;
    }
    let found = async |search: EventSearch| {
        let outcome = store.search(&search).await.unwrap();
        let places: Vec<_> = outcome.found.iter().map(|found| format!("{} {}", found.run, found.seq)).collect();
        (places, outcome.capped)
    };
    let tea = || EventSearch::new("tea", 10);
    let of_user = || RunFilter::builder().user("user-1");

    assert_eq!(found(tea().once().within(of_user().build())).await, (texts(["run-5 0", "run-3 0", "run-1 0"]), None));
    assert_eq!(found(EventSearch::new("tea", 3)).await, (texts(["run-5 0", "run-5 2", "run-4 0"]), None));
    let (places, capped) = found(tea().once().within(of_user().build()).scan(7)).await;
    assert_eq!(places, texts(["run-5 0", "run-3 0"]));
    let rest = of_user().after(capped.expect("there are further runs")).build();
    assert_eq!(found(tea().once().within(rest).scan(7)).await, (texts(["run-1 0"]), None));
    let (places, capped) = found(tea().scan(1)).await;
    assert_eq!((places, capped.map(|last| last.run)), (texts(["run-5 0", "run-5 2"]), Some("run-5".into())));
}

fn texts<const N: usize>(of: [&str; N]) -> Vec<String> {
    of.map(str::to_owned).to_vec()
}

/// A run with a successor in its conversation is not removed, nor are its predecessors; they can be removed after it.
pub async fn run_with_a_successor_is_not_removed<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    let runs = ["c-2", "c-1", "c-0"].map(RunId::from);
    for (number, run) in (0..).zip(runs.iter().rev()) {
        let after = runs.iter().rev().take_while(|before| *before != run).last().cloned();
        let sample = Sample::new(run.as_str()).says("found").row(|row| {
            (row.conversation, row.after) = (Some("c".to_owned()), after);
            (row.status, row.started) = (Status::Completed, Timestamp(1_000_000 + number));
        });
        _ = sample.appended(&store).await;
    }
    let there = async || other.runs(&RunFilter::default()).await.unwrap().len();

    assert_eq!(store.remove(&runs[1..]).await, Ok(0));
    assert_eq!(there().await, 3);
    assert_eq!(store.remove(&runs).await, Ok(3));
    assert_eq!(there().await, 0);
}

/// A run that is over is removed with everything that belongs to it, and an open one is not. Its id may be used again.
pub async fn run_that_is_over_is_removed<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    for status in Status::ALL {
        let sample = Sample::new(status.as_str()).says("found").claimed(3).row(|row| row.status = status);
        let sample = sample.waits(vec![approval("Loop/0.0", 0), answer("Loop/0.1", 1, &[("slack", "thread", false)])]);
        _ = sample.snapshot(1, "one").prompts(0, 1, "one").appended(&store).await;
    }
    let runs: Vec<_> = Status::ALL.iter().map(|status| RunId::from(status.as_str())).collect();

    assert_eq!(store.remove(&runs).await, Ok(3));
    assert_eq!(store.remove(&runs).await, Ok(0));

    for (run, status) in runs.iter().zip(Status::ALL) {
        assert_eq!(other.run(run).await.is_err(), status.is_over(), "{run}");
        assert_eq!(other.snapshot(run).await.unwrap().is_none(), status.is_over(), "{run}");
        assert_eq!(other.saved_prompts(run).await.unwrap().is_empty(), status.is_over(), "{run}");
    }
    assert_eq!(other.runs(&RunFilter::default()).await.unwrap().len(), 3);
    assert_eq!(other.pending(&PendingFilter::default()).await.unwrap().len(), 6);
    assert_eq!(other.search(&EventSearch::new("found", 10)).await.unwrap().found.len(), 3);

    let run = Sample::new("failed").says("anew").by(0).appended(&store).await;
    assert_eq!(other.read(&run.run, Seq(0), 10).await.unwrap().len(), 1);
    assert_eq!(Sample::new("failed").says("anew").append(&store).await, Err(StoreError::Conflict { next: Seq(1) }));
}
