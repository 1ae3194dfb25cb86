//! Figures of many runs.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{
    Claim, ClaimRefusal, Epoch, ModelUse, Money, PendingKind, RunCost, RunSummary, Status, Timestamp, Usage, WaitSpec,
};
use positronic_core::store::{
    EndedRuns, EventStore, FigureFilter, Figures, MemoryStore, ModelRuns, OpenRuns, RunIndex as _, WaitingItems,
};
use serde_json::json;

use super::Sample;
use super::lists::approval;

/// The range of the cases: ten buckets of 100 µs from 1,000 on.
fn filter() -> FigureFilter {
    FigureFilter::builder()
        .from(Timestamp(1000))
        .bucket(Duration::from_micros(100))
        .buckets(10)
        .now(Timestamp(1950))
        .build()
}

/// Sets the end of a run.
fn ended(row: &mut RunSummary, status: Status, started: i64, ended: i64) {
    row.status = status;
    (row.started, row.since, row.at) = (Timestamp(started), Timestamp(ended), Timestamp(ended + 7));
}

fn cost(nanos: u64, currency: &str, is_partial: bool) -> Option<RunCost> {
    Some(RunCost { known: Money::of_nanos(nanos), currency: Some(currency.into()), is_partial })
}

fn used(model: &str, [input, output, cached]: [u64; 3], nanos: u64, is_partial: bool) -> ModelUse {
    let usage = Usage { input, output, cached, reasoning: 1, ..Usage::default() };
    ModelUse { model: model.into(), usage, known: Money::of_nanos(nanos), is_partial }
}

/// Makes a pending item that waits for a webhook.
fn webhook() -> PendingKind {
    let wait = WaitSpec {
        webhook: "slack".to_owned(),
        identifier: "thread".to_owned(),
        fresh: false,
        person: false,
        prompt: None,
        schema: Arc::new(json!({})),
        expires: None,
        otherwise: None,
    };
    PendingKind::Answer { waits: vec![wait] }
}

/// Figures have each run that ended in the range once, in its bucket, and the open ones as they stand.
pub async fn figures_add_up_runs<S: EventStore>(open: impl Fn() -> S) {
    let (store, other) = (open(), open());
    for (name, nanos, at) in [("paid-1", 5_000_000_000, 1010), ("paid-2", 1, 1099)] {
        let sample = Sample::new(name).says("one").row(|row| {
            ended(row, Status::Completed, 990, at);
            row.usage = Usage { input: 10, output: 2, cached: 3, reasoning: 1, ..Usage::default() };
            row.active = Some(Duration::from_micros(nanos % 1000 + 40));
            row.cost = cost(nanos, "USD", nanos == 1);
            let one = used("openai/one", [10, 2, 3], nanos, nanos == 1);
            row.models = Arc::from(if nanos == 1 {
                // The others of a run stand for themselves.
                vec![used("openai/one", [6, 1, 3], 0, true), used("local", [4, 1, 0], 1, false)]
            } else {
                vec![one]
            });
        });
        _ = sample.appended(&store).await;
    }
    for (name, started, at, cause) in
        [("failed-1", 1100, 1250, "no page"), ("failed-2", 1150, 1299, "no page"), ("failed-3", 1150, 1999, "no\0key")]
    {
        let sample = Sample::new(name).says("one").row(|row| {
            ended(row, Status::Failed, started, at);
            (row.cause, row.why) = (Some(cause.to_owned()), Some(format!("the step `Load` failed: {cause}")));
            if name == "failed-1" {
                // A summary of an earlier version: its cost is unknown.
                row.usage.input = 5;
            }
        });
        _ = sample.appended(&store).await;
    }
    for (name, at) in [("early", 999), ("late", 2000)] {
        let sample = Sample::new(name).says("one").row(|row| ended(row, Status::Cancelled, at, at));
        _ = sample.appended(&store).await;
    }
    let stuck = Sample::new("stuck").says("one").row(|row| {
        row.refused = Some(ClaimRefusal::NoBrain);
        (row.started, row.at) = (Timestamp(1999), Timestamp(1999));
    });
    _ = stuck.appended(&store).await;
    for (name, at) in [("asks-1", 900), ("asks-2", 1700)] {
        let sample = Sample::new(name).says("one").row(|row| {
            row.status = Status::Waiting;
            (row.started, row.at, row.wake) = (Timestamp(at), Timestamp(at), Some(Timestamp(1950)));
        });
        _ = sample.waits(vec![approval("Loop/0.0", 0), approval("Loop/0.1", 0)]).appended(&store).await;
    }

    let figures = other.figures(&filter()).await.unwrap().sorted();

    let group = |bucket, status, cause: Option<&str>, runs, first, last| EndedRuns {
        bucket,
        status,
        brain: "Sample".into(),
        currency: None,
        cause: cause.map(Arc::from),
        runs,
        first: Timestamp(first),
        last: Timestamp(last),
        usage: Usage::default(),
        cost: Money::default(),
        partial: 0,
        active: Vec::new(),
    };
    let paid = EndedRuns {
        currency: Some("USD".into()),
        usage: Usage { input: 20, output: 4, cached: 6, ..Usage::default() },
        cost: Money::of_nanos(5_000_000_001),
        partial: 1,
        active: vec![40, 41],
        ..group(0, Status::Completed, None, 2, 1010, 1099)
    };
    let one = |status, due, person: bool, runs, oldest| OpenRuns {
        status,
        brain: "Sample".into(),
        owner: None,
        refused: (!person).then_some(ClaimRefusal::NoBrain),
        person,
        due,
        runs,
        oldest: Timestamp(oldest),
    };
    assert_eq!(figures.started, [0, 3, 0, 0, 0, 0, 0, 1, 0, 1]);
    let no_key = figures.ended.last().and_then(|group| group.cause.clone()).unwrap();
    assert!(no_key.starts_with("no") && no_key.ends_with("key"), "{no_key:?}");
    let expected = [
        paid,
        EndedRuns {
            usage: Usage { input: 5, ..Usage::default() },
            partial: 1,
            ..group(2, Status::Failed, Some("no page"), 2, 1250, 1299)
        },
        group(9, Status::Failed, Some(&no_key), 1, 1999, 1999),
    ];
    assert_eq!(figures.ended, expected);
    let model = |model: &str, runs, [input, output, cached]: [u64; 3], cost, partial| ModelRuns {
        bucket: 0,
        model: model.into(),
        currency: Some("USD".into()),
        runs,
        usage: Usage { input, output, cached, ..Usage::default() },
        cost: Money::of_nanos(cost),
        partial,
    };
    assert_eq!(
        figures.models,
        [model("local", 1, [4, 1, 0], 1, 0), model("openai/one", 2, [16, 3, 6], 5_000_000_000, 1)]
    );
    assert_eq!(figures.open, [one(Status::Running, true, false, 1, 1999), one(Status::Waiting, true, true, 2, 900)]);
    assert_eq!(
        figures.waiting,
        [
            WaitingItems { bucket: None, items: 2, oldest: Timestamp(900) },
            WaitingItems { bucket: Some(7), items: 2, oldest: Timestamp(1700) },
        ]
    );
}

/// Figures follow the last append: a run that is open again, or removed, does not count among those that are over.
pub async fn figures_follow_the_appends<S: EventStore>(open: impl Fn() -> S) {
    let store = open();
    let runs = async || {
        let figures = store.figures(&filter()).await.unwrap();
        let count = |runs: &[u64]| runs.iter().sum::<u64>();
        // The one run that is over has two models.
        let of_models = figures.models.iter().map(|model| model.runs).collect::<Vec<_>>();
        assert_eq!(count(&of_models), 2 * figures.ended.iter().map(|group| group.runs).sum::<u64>());
        let over = figures.ended.iter().map(|group| group.runs).collect::<Vec<_>>();
        (count(&over), figures.open.iter().map(|group| group.runs).sum::<u64>(), count(&figures.started))
    };
    let mut sample = Sample::new("run-1").says("one").row(|row| {
        row.started = Timestamp(1000);
        row.models = Arc::from(vec![used("one", [1, 1, 1], 1, false), used("two", [1, 1, 1], 1, false)]);
    });
    sample = sample.appended(&store).await;
    assert_eq!(runs().await, (0, 1, 1));
    sample = sample.says("two").row(|row| ended(row, Status::Failed, 1000, 1100)).appended(&store).await;
    assert_eq!(runs().await, (1, 0, 1));
    // An append after the end changes nothing.
    sample = sample.says("three").row(|row| ended(row, Status::Failed, 1000, 1100)).appended(&store).await;
    assert_eq!(runs().await, (1, 0, 1));
    sample = sample.says("four").row(|row| row.status = Status::Running).appended(&store).await;
    assert_eq!(runs().await, (0, 1, 1));
    sample = sample.says("five").row(|row| ended(row, Status::Completed, 1000, 1300)).appended(&store).await;
    assert_eq!(runs().await, (1, 0, 1));

    assert_eq!(store.remove(std::slice::from_ref(&sample.run)).await, Ok(1));
    assert_eq!(runs().await, (0, 0, 0));
}

/// Every store counts as the memory store does, for all runs and for those of a brain, a user or a model.
pub async fn figures_are_narrowed<S: EventStore>(open: impl Fn() -> S) {
    let (store, memory) = (open(), MemoryStore::new());
    for number in 0_i64..60 {
        let status = Status::ALL[usize::try_from(number % 6).unwrap()];
        let mut sample = Sample::new(&format!("run-{number}")).says("one").row(|row| {
            ended(row, status, 950 + 7 * number, 1000 + 13 * number);
            row.brain = if number % 4 == 0 { "Support" } else { "Sales" }.into();
            row.user = (number % 3 != 0).then(|| format!("user-{}", number % 2));
            row.cause = (status == Status::Failed).then(|| format!("cause {}", number % 2));
            row.cost = (number % 5 != 0).then(|| cost(1, if number % 2 == 0 { "USD" } else { "EUR" }, false)).flatten();
            row.active = (number % 7 != 0).then_some(Duration::from_micros(1));
            let of_run = used(&format!("openai/{}", number % 2), [1, 0, 0], u64::from(row.cost.is_some()), false);
            row.usage = of_run.usage;
            row.models = Arc::from(match number % 8 {
                0 => Vec::new(),
                1 | 2 => vec![used("openai/2", [7, 8, 9], 3, true), used("local", [1, 1, 1], 0, false), of_run],
                _ => vec![of_run],
            });
            row.wake = (number % 5 != 0).then_some(Timestamp(1000 + 40 * number));
            row.mail = status == Status::Waiting && number % 7 < 3;
            row.claim = (number % 2 == 0 && status == Status::Running).then(|| Claim {
                epoch: Epoch(1),
                owner: "worker".into(),
                released: number % 4 == 0,
            });
            row.refused = (number % 12 == 6).then_some(ClaimRefusal::Changed);
        });
        sample = match (status, number % 4) {
            (Status::Waiting, 1) => sample.waits(vec![approval("Loop/0.0", 0)]),
            (Status::Waiting, _) => {
                let pending = approval("Loop/0.0", 0);
                sample.waits(vec![positronic_core::record::Pending { kind: webhook(), ..pending }])
            }
            _ => sample,
        };
        sample.clone().append(&memory).await.unwrap();
        _ = sample.appended(&store).await;
    }
    let all = filter();
    let mut brain = all.clone();
    brain.brain = Some("Support".to_owned());
    let mut user = all.clone();
    user.user = Some("user-1".to_owned());
    let mut nobody = user.clone();
    nobody.brain = Some("None".to_owned());
    // Runs with several models have both, and some of the brain's runs have neither.
    let model = |name: &str, filter: &FigureFilter| {
        let mut filter = filter.clone();
        filter.model = Some(name.to_owned());
        filter
    };
    let (local, one, no_model) = (model("local", &all), model("openai/1", &brain), model("0", &all));
    let counted = memory.figures(&local).await.unwrap().sorted();
    let runs = counted.ended.iter().map(|group| group.runs).sum::<u64>();
    assert_eq!(counted.ended.iter().map(|group| group.usage.total()).sum::<u64>(), 2 * runs, "only its own tokens");
    assert!(runs > 0 && counted.models.iter().all(|group| &*group.model == "local"), "{counted:?}");
    assert!(counted.open.iter().map(|group| group.runs).sum::<u64>() > 0 && !counted.waiting.is_empty(), "{counted:?}");
    assert_eq!(store.figures(&no_model).await, Ok(Figures::new(&no_model)), "a name without its provider");
    for filter in
        [all, brain, user, nobody.clone(), local, one, model("openai/0", &filter()), model("openai/2", &filter())]
    {
        let (counted, expected) = (store.figures(&filter).await.unwrap(), memory.figures(&filter).await.unwrap());
        // A store may drop the owner of a claim without a live lease.
        let unowned = |figures: Figures| {
            let mut figures = figures.sorted();
            for group in &mut figures.open {
                group.owner = None;
            }
            let mut open: Vec<OpenRuns> = Vec::new();
            for group in figures.sorted().open {
                match open.last_mut().filter(|last| {
                    (last.status, &last.brain, last.refused, last.person, last.due)
                        == (group.status, &group.brain, group.refused, group.person, group.due)
                }) {
                    Some(last) => {
                        last.runs += group.runs;
                        last.oldest = last.oldest.min(group.oldest);
                    }
                    None => open.push(group),
                }
            }
            open
        };
        assert_eq!(unowned(counted.clone()), unowned(expected.clone()), "{filter:?}");
        let (counted, expected) = (counted.sorted(), expected.sorted());
        assert_eq!((counted.started, counted.ended), (expected.started, expected.ended), "{filter:?}");
        assert_eq!(counted.models, expected.models, "{filter:?}");
        assert_eq!(counted.waiting, expected.waiting, "{filter:?}");
    }
    assert_eq!(store.figures(&nobody).await, Ok(Figures::new(&nobody)));
}

/// The range of the benchmark: 48 buckets of half an hour, from 0 on.
#[must_use]
pub fn day() -> FigureFilter {
    FigureFilter::builder()
        .from(Timestamp(0))
        .bucket(Duration::from_mins(30))
        .buckets(48)
        .now(Timestamp(86_399_000_000))
        .build()
}

/// Makes a run for the benchmark of figures: of 100,000 runs, which end over a day, 97 of 100 have completed, two have failed by one of 20 causes, and one waits
/// for a person. They are of 12 brains and 500 users.
#[must_use]
pub fn sample_of_a_day(number: u64) -> Sample {
    let at = i64::try_from(number % 100_000).unwrap() * 864_000;
    let brain = ["Support", "Newsletter", "Release", "Kitchen"][usize::try_from(number % 4).unwrap()];
    let sample = Sample::new(&format!("01a2180b-{number:024}")).says("done").row(|row| {
        row.status = match number % 100 {
            0 => Status::Waiting,
            1 | 51 => Status::Failed,
            _ => Status::Completed,
        };
        (row.started, row.since, row.at) = (Timestamp(at - 40_000_000), Timestamp(at), Timestamp(at));
        row.brain = format!("{brain} {}", number % 3).into();
        row.user = Some(format!("user-{}", number % 500));
        row.usage = Usage { input: 30_000 + number, output: 700, cached: 20_000, ..Usage::default() };
        row.active = Some(Duration::from_millis(number * 7919 % 60_000));
        row.cost = cost(14_300_000 + number, "USD", number.is_multiple_of(50));
        let model = ["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5"][usize::from(number.is_multiple_of(5))];
        let mut models =
            vec![used(model, [30_000 + number, 700, 20_000], 14_300_000 + number, number.is_multiple_of(50))];
        if number % 10 == 3 {
            models.push(used("openai/gpt-5-nano", [900, 60, 0], 40_000, false));
        }
        row.models = Arc::from(models);
        if row.status == Status::Failed {
            let shop = char::from(b'a' + u8::try_from(number / 100 % 20).unwrap());
            row.cause = Some(format!("the server `shop-{shop}` is closed (HTTP 503)"));
            row.why =
                row.cause.as_ref().map(|cause| format!("the brain `Shop` failed: the step `Load` failed: {cause}"));
        }
    });
    if sample.append.index.summary.status == Status::Waiting {
        sample.waits(vec![approval("Loop/0.0", 0)])
    } else {
        sample
    }
}
