//! The answer of `/overview`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use positronic_core::record::{Money, Status, Timestamp};
use positronic_core::store::{EndedRuns, FigureFilter, Figures, ModelRuns, OpenRuns, RunSums};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ended_runs::{RunsFold, RunsSum};
use super::range::Range;
use crate::api::run_item::value;
use crate::api::sums::{CostSum, TokenSum};
use crate::time::Time;

/// How many causes, brains and models are listed, those with most runs and those with the highest cost.
const MAX_CAUSES: usize = 20;
const MAX_BRAINS: usize = 50;
const MAX_MODELS: usize = 20;
/// How many brains of a cause are named.
const MAX_NAMED: usize = 5;

/// The figures of runs. A run counts when it ends, with everything that it has cost from its beginning on; runs that are
/// open count as they stand now. What a fork shares with its origin counts only there.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OverviewItem {
    range: Range,
    /// The beginning of the first bucket.
    from: Time,
    /// The time of the answer. The last bucket is not over.
    now: Time,
    /// The length of a bucket in seconds.
    bucket_seconds: u64,
    /// How many runs were started in the range.
    started: u64,
    /// The runs that ended in the range.
    ended: RunsSum,
    /// What the runs that are open now have used so far; `null` for one model. It is in no other sum.
    open: Option<OpenSum>,
    buckets: Vec<BucketItem>,
    /// What waits for a person now.
    waiting: WaitingSum,
    /// The causes of failures in the range, those of most runs first.
    causes: Vec<CauseItem>,
    /// How many further causes there are.
    more_causes: usize,
    /// The brains of runs that ended in the range, the highest cost first.
    brains: Vec<BrainFigures>,
    /// How many further brains there are.
    more_brains: usize,
    /// The models that have answered in runs that ended in the range, the highest cost first. Their tokens are fewer than those of `ended` if
    /// answers name no model, or a run has more than 16.
    models: Vec<ModelFigures>,
    /// How many further models there are.
    more_models: usize,
    queue: QueueItem,
    /// The living workers that have claimed runs, by their names.
    workers: Vec<WorkerRuns>,
}

/// What open runs have used so far.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenSum {
    /// The number of runs.
    runs: u64,
    /// What they have cost, by currency.
    costs: Vec<CostSum>,
    /// How many of them have a cost that is not known in full.
    partly_priced: u64,
    /// Their tokens.
    tokens: TokenSum,
}

/// The figures of a part of the range.
#[derive(Debug, Serialize, JsonSchema)]
struct BucketItem {
    /// Its beginning.
    at: Time,
    /// How many runs were started in it.
    started: u64,
    /// The runs that ended in it.
    ended: RunsSum,
    /// How many of the items that wait for a person now were waiting at its end.
    waiting: u64,
}

/// What waits for a person.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct WaitingSum {
    /// The number of pending items.
    items: u64,
    /// The number of runs that have them.
    runs: u64,
    /// Since when the oldest item waits; `null` if nothing waits.
    oldest: Option<Time>,
}

/// A cause of failures.
#[derive(Debug, Serialize, JsonSchema)]
struct CauseItem {
    /// The innermost error, with an ellipsis in the place of numbers and ids.
    cause: String,
    /// How many runs failed by it.
    runs: u64,
    /// When the first of them failed in the range.
    first: Time,
    /// When the last of them failed.
    last: Time,
    /// The titles of their brains, up to five.
    brains: Vec<String>,
    /// How many runs failed by it in each bucket.
    buckets: Vec<u64>,
}

/// The figures of a brain.
#[derive(Debug, Serialize, JsonSchema)]
struct BrainFigures {
    /// Its title.
    brain: String,
    /// Its runs that ended in the range.
    ended: RunsSum,
    /// When its last run completed in the range.
    last_completed: Option<Time>,
}

/// The figures of a model.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelFigures {
    /// The model, as `provider/model`.
    model: String,
    /// The runs that ended in the range in which it has answered. A run with several models counts for each of them.
    runs: u64,
    /// What its answers have cost, by currency.
    costs: Vec<CostSum>,
    /// In how many of the runs the cost of its answers is not known in full.
    partly_priced: u64,
    /// The tokens of its answers.
    tokens: TokenSum,
    /// What its answers have cost in the runs that ended in each bucket.
    buckets: Vec<Vec<CostSum>>,
}

/// Open runs that no worker works on.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct QueueItem {
    /// Runs that living workers have claimed and work on.
    claimed: u64,
    /// Runs with work that no living worker has claimed.
    queued: u64,
    /// When the last event of the one was appended that is queued longest; `null` if none is.
    oldest: Option<Time>,
    /// Runs with work that no worker can claim, by brain and reason.
    stuck: Vec<StuckItem>,
    /// Runs that wait for a time or a webhook.
    asleep: u64,
    /// Runs that a person or the engine has paused.
    paused: u64,
}

/// Runs of a brain that no worker can claim.
#[derive(Debug, Serialize, JsonSchema)]
struct StuckItem {
    brain: String,
    /// `no_brain`, `changed`, `prices` or `no_model`.
    reason: Value,
    runs: u64,
    /// The earliest of their last events.
    oldest: Time,
}

/// A worker with the runs that it has claimed.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkerRuns {
    owner: String,
    /// The runs that it works on.
    runs: u64,
}

impl OverviewItem {
    /// Adds up the figures of a store.
    pub(super) fn new(
        range: Range,
        filter: &FigureFilter,
        figures: Figures,
        open_sums: Option<RunSums>,
        is_live: impl Fn(&str) -> bool,
    ) -> Self {
        let Figures { started, ended, models, open, waiting, .. } = figures.sorted();
        let mut all = RunsFold::default();
        let mut buckets: Vec<_> = started.iter().map(|_| RunsFold::default()).collect();
        let mut brains: HashMap<&str, RunsFold<'_>> = HashMap::new();
        for group in &ended {
            all.add(group);
            if let Some(bucket) = buckets.get_mut(index(group.bucket)) {
                bucket.add(group);
            }
            brains.entry(&group.brain).or_default().add(group);
        }
        let mut items = 0;
        let mut waits = waiting.iter().peekable();
        let parts = (0_u32..).zip(buckets).zip(&started).map(|((number, fold), started)| {
            while let Some(group) = waits.next_if(|group| group.bucket.is_none_or(|bucket| bucket <= number)) {
                items += group.items;
            }
            let at = Timestamp(filter.from.0 + i64::from(number) * filter.micros());
            BucketItem { at: at.into(), started: *started, ended: fold.sum(), waiting: items }
        });
        let buckets = parts.collect();
        let (causes, more_causes) = causes(&ended, started.len());
        let (brains, more_brains) = brains_by_cost(brains);
        let (models, more_models) = models_by_cost(&models, started.len());
        let (queue, workers) = standing(&open, is_live);
        Self {
            range,
            from: filter.from.into(),
            now: filter.now.into(),
            bucket_seconds: filter.bucket.as_secs(),
            started: started.iter().sum(),
            ended: all.sum(),
            open: open_sums.map(|sums| OpenSum {
                runs: sums.runs,
                costs: CostSum::all(&sums),
                partly_priced: sums.partial,
                tokens: sums.usage.into(),
            }),
            buckets,
            waiting: WaitingSum {
                items: waiting.iter().map(|group| group.items).sum(),
                runs: open.iter().filter(|group| group.person).map(|group| group.runs).sum(),
                oldest: waiting.iter().map(|group| group.oldest).min().map(Time),
            },
            causes,
            more_causes,
            brains,
            more_brains,
            models,
            more_models,
            queue,
            workers,
        }
    }
}

fn index(bucket: u32) -> usize {
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// Lists the causes of failures, and returns how many further ones there are.
fn causes(ended: &[EndedRuns], buckets: usize) -> (Vec<CauseItem>, usize) {
    let mut causes: BTreeMap<&str, (CauseItem, BTreeSet<&str>)> = BTreeMap::new();
    for group in ended.iter().filter(|group| group.status == Status::Failed) {
        let cause = group.cause.as_deref().unwrap_or_default();
        let (item, brains) = causes.entry(cause).or_insert_with(|| {
            let (cause, buckets) = (cause.to_owned(), vec![0; buckets]);
            let (first, last) = (group.first.into(), group.last.into());
            (CauseItem { cause, runs: 0, first, last, brains: Vec::new(), buckets }, BTreeSet::new())
        });
        item.runs += group.runs;
        (item.first, item.last) = (item.first.min(group.first.into()), item.last.max(group.last.into()));
        if let Some(count) = item.buckets.get_mut(index(group.bucket)) {
            *count += group.runs;
        }
        brains.insert(&group.brain);
    }
    let named = |(item, brains): (CauseItem, BTreeSet<&str>)| CauseItem {
        brains: brains.into_iter().take(MAX_NAMED).map(str::to_owned).collect(),
        ..item
    };
    let mut causes: Vec<_> = causes.into_values().map(named).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse((cause.runs, cause.last)));
    let more = causes.len().saturating_sub(MAX_CAUSES);
    causes.truncate(MAX_CAUSES);
    (causes, more)
}

/// Lists the brains, and returns how many further ones there are.
fn brains_by_cost(brains: HashMap<&str, RunsFold<'_>>) -> (Vec<BrainFigures>, usize) {
    let mut brains: Vec<_> = brains.into_iter().collect();
    brains.sort_by(|(one, a), (other, b)| {
        (b.largest_cost(), b.runs()).cmp(&(a.largest_cost(), a.runs())).then(one.cmp(other))
    });
    let more = brains.len().saturating_sub(MAX_BRAINS);
    let item = |(brain, fold): (&str, RunsFold<'_>)| {
        let last_completed = fold.last_completed.map(Time);
        BrainFigures { brain: brain.to_owned(), ended: fold.sum(), last_completed }
    };
    (brains.into_iter().take(MAX_BRAINS).map(item).collect(), more)
}

/// Lists the models, and returns how many further ones there are.
fn models_by_cost(groups: &[ModelRuns], buckets: usize) -> (Vec<ModelFigures>, usize) {
    let mut models: BTreeMap<&str, (RunSums, Vec<Vec<CostSum>>)> = BTreeMap::new();
    for group in groups {
        let (sums, parts) =
            models.entry(&group.model).or_insert_with(|| (RunSums::default(), vec![Vec::new(); buckets]));
        let known = group.currency.as_deref().filter(|_| group.cost > Money::default()).map(|name| (name, group.cost));
        sums.add_runs(group.runs, group.usage, known, group.partial);
        if let Some(part) = parts.get_mut(index(group.bucket)) {
            part.extend(known.map(|(currency, cost)| CostSum::new(currency, cost)));
        }
    }
    let mut models: Vec<_> = models.into_iter().collect();
    let largest = |sums: &RunSums| sums.costs.values().copied().max().unwrap_or_default();
    models.sort_by_key(|(_, (sums, _))| std::cmp::Reverse((largest(sums), sums.usage.total(), sums.runs)));
    let more = models.len().saturating_sub(MAX_MODELS);
    let item = |(model, (sums, buckets)): (&str, (RunSums, Vec<Vec<CostSum>>))| ModelFigures {
        model: model.to_owned(),
        runs: sums.runs,
        costs: CostSum::all(&sums),
        partly_priced: sums.partial,
        tokens: sums.usage.into(),
        buckets,
    };
    (models.into_iter().take(MAX_MODELS).map(item).collect(), more)
}

/// Counts the open runs by what they do, and those of each worker.
fn standing(open: &[OpenRuns], is_live: impl Fn(&str) -> bool) -> (QueueItem, Vec<WorkerRuns>) {
    let mut queue = QueueItem::default();
    let mut workers: BTreeMap<&str, u64> = BTreeMap::new();
    for group in open {
        let owner = group.owner.as_deref().filter(|owner| is_live(owner));
        match (group.status, group.refused) {
            (Status::Paused, _) => queue.paused += group.runs,
            (_, _) if group.due && owner.is_some() => {
                queue.claimed += group.runs;
                *workers.entry(owner.unwrap_or_default()).or_default() += group.runs;
            }
            (_, Some(refused)) => queue.stuck.push(StuckItem {
                brain: group.brain.to_string(),
                reason: value(&refused),
                runs: group.runs,
                oldest: group.oldest.into(),
            }),
            (_, None) if group.due => {
                queue.queued += group.runs;
                let oldest = Time(group.oldest);
                queue.oldest = Some(queue.oldest.map_or(oldest, |before| before.min(oldest)));
            }
            (_, None) if !group.person => queue.asleep += group.runs,
            (_, None) => {}
        }
    }
    let workers = workers.into_iter().map(|(owner, runs)| WorkerRuns { owner: owner.to_owned(), runs });
    (queue, workers.collect())
}
