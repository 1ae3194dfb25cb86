//! Figures of many runs, which a store adds up without their summaries.
//!
//! A run counts when it ends, with everything that it has cost until then: a store keeps a small row for each run that is over,
//! and writes it in the append that ends the run. Runs that are open are counted as they stand. So figures of a range of time
//! need one pass over the rows of that range, and no log and no summary.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::record::encoding::micros::micros;
use crate::record::{ClaimRefusal, ModelUse, Money, RunSummary, Status, Timestamp, Usage};

/// The range of time and the runs of which figures are wanted. The range is divided into buckets of the same length.
#[derive(Debug, Clone, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct FigureFilter {
    /// The beginning of the first bucket.
    pub from: Timestamp,
    /// The length of a bucket, at least a microsecond.
    pub bucket: Duration,
    /// The number of buckets.
    pub buckets: u32,
    /// The current time, by which work is due.
    pub now: Timestamp,
    /// Only runs of the brain with this title.
    #[builder(default)]
    pub brain: Option<String>,
    /// Only runs of this user.
    #[builder(default)]
    pub user: Option<String>,
    /// Only runs in which this model has answered, as `provider/model`. The tokens and costs of figures are then those of its answers.
    #[builder(default)]
    pub model: Option<String>,
}

impl FigureFilter {
    /// Returns the length of a bucket in microseconds.
    #[must_use]
    pub fn micros(&self) -> i64 {
        i64::try_from(micros(self.bucket)).unwrap_or(i64::MAX).max(1)
    }

    /// Returns the end of the last bucket.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        Timestamp(self.from.0.saturating_add(self.micros().saturating_mul(i64::from(self.buckets))))
    }

    /// Returns the bucket of a time; `None` outside of the range.
    #[must_use]
    pub fn bucket_of(&self, at: Timestamp) -> Option<u32> {
        let passed = at.0.checked_sub(self.from.0).filter(|passed| *passed >= 0)?;
        u32::try_from(passed / self.micros()).ok().filter(|bucket| *bucket < self.buckets)
    }

    /// Returns whether a run is one of those that count.
    #[must_use]
    pub fn counts(&self, row: &RunSummary) -> bool {
        self.brain.as_deref().is_none_or(|only| only == &*row.brain)
            && (self.user.is_none() || self.user == row.user)
            && (self.model.is_none() || row.models.iter().any(|used| self.is_of(used)))
    }

    /// Returns whether the answers of a model count.
    pub(super) fn is_of(&self, used: &ModelUse) -> bool {
        self.model.as_deref().is_none_or(|only| only == &*used.model)
    }
}

/// The figures of the runs of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Figures {
    /// How many runs have started in each bucket.
    pub started: Vec<u64>,
    /// The runs that have ended in the range, in groups.
    pub ended: Vec<EndedRuns>,
    /// What each model has done in the runs that have ended in the range.
    pub models: Vec<ModelRuns>,
    /// The runs that are open now, in groups.
    pub open: Vec<OpenRuns>,
    /// What waits for a person now, by the bucket in which it began to wait.
    pub waiting: Vec<WaitingItems>,
}

impl Figures {
    /// Creates figures without a run.
    #[must_use]
    pub fn new(filter: &FigureFilter) -> Self {
        Self { started: vec![0; usize::try_from(filter.buckets).unwrap_or_default()], ..Self::default() }
    }

    /// Counts runs that have started at a time.
    pub fn add_started(&mut self, bucket: u32, runs: u64) {
        let count = usize::try_from(bucket).ok().and_then(|bucket| self.started.get_mut(bucket));
        if let Some(count) = count {
            *count = count.saturating_add(runs);
        }
    }

    /// Sorts the groups, so that equal figures of two stores are equal.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        for group in &mut self.ended {
            group.active.sort_unstable();
        }
        self.ended.sort_by(|a, b| a.key().cmp(&b.key()));
        self.models.sort_by(|a, b| (a.bucket, &a.model, &a.currency).cmp(&(b.bucket, &b.model, &b.currency)));
        self.open.sort_by(|a, b| a.key().cmp(&b.key()));
        self.waiting.sort_by_key(|items| items.bucket);
        self
    }
}

/// Runs that have ended in the same bucket, alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRuns {
    /// The bucket of their end.
    pub bucket: u32,
    /// How they ended.
    pub status: Status,
    /// The title of their brain.
    pub brain: Arc<str>,
    /// The currency of their costs.
    pub currency: Option<Arc<str>>,
    /// The cause of their failure.
    pub cause: Option<Arc<str>>,
    /// The number of runs.
    pub runs: u64,
    /// The end of the first one.
    pub first: Timestamp,
    /// The end of the last one.
    pub last: Timestamp,
    /// Their tokens: only those of requests, of answers, and from caches.
    pub usage: Usage,
    /// Their known cost.
    pub cost: Money,
    /// How many of them have a cost that is not known in full.
    pub partial: u64,
    /// The known active times, in microseconds.
    pub active: Vec<u64>,
}

impl EndedRuns {
    fn key(&self) -> (u32, &'static str, &str, Option<&str>, Option<&str>) {
        (self.bucket, self.status.as_str(), &self.brain, self.currency.as_deref(), self.cause.as_deref())
    }
}

/// What a model has done in runs that have ended in the same bucket, whose costs are in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRuns {
    /// The bucket of their end.
    pub bucket: u32,
    /// The model, as in [`ModelUse`].
    pub model: Arc<str>,
    /// The currency of the runs' costs.
    pub currency: Option<Arc<str>>,
    /// The number of runs in which it has answered.
    pub runs: u64,
    /// The tokens of its answers: only those of requests, of answers, and from caches.
    pub usage: Usage,
    /// The known cost of its answers.
    pub cost: Money,
    /// In how many of the runs the cost of its answers is not known in full.
    pub partial: u64,
}

/// Runs that are open, alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRuns {
    /// Their status.
    pub status: Status,
    /// The title of their brain.
    pub brain: Arc<str>,
    /// The worker that has claimed them and not released them. It may have died.
    pub owner: Option<Arc<str>>,
    /// Why no worker can claim them although they have work.
    pub refused: Option<ClaimRefusal>,
    /// Whether a person can decide or answer something.
    pub person: bool,
    /// Whether they have work at the current time.
    pub due: bool,
    /// The number of runs.
    pub runs: u64,
    /// The earliest of their last events.
    pub oldest: Timestamp,
}

impl OpenRuns {
    fn key(&self) -> (&'static str, &str, Option<&str>, Option<String>, bool, bool) {
        let refused = self.refused.map(|refused| format!("{refused:?}"));
        (self.status.as_str(), &self.brain, self.owner.as_deref(), refused, self.person, self.due)
    }
}

/// Pending items for a person that began to wait in the same bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingItems {
    /// The bucket; `None` for items that began to wait before the range.
    pub bucket: Option<u32>,
    /// The number of items.
    pub items: u64,
    /// When the first one began to wait.
    pub oldest: Timestamp,
}

/// What figures count of a run that is over.
#[derive(Debug, Clone, Copy)]
pub struct EndedRun<'a> {
    /// When it was started.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// How it ended.
    pub status: Status,
    /// The title of its brain.
    pub brain: &'a str,
    /// Its active time in microseconds, if it is known.
    pub active: Option<u64>,
    /// Its tokens.
    pub usage: Usage,
    /// Its known cost.
    pub cost: Money,
    /// The currency of its cost.
    pub currency: Option<&'a str>,
    /// Whether its cost is not known in full.
    pub is_partial: bool,
    /// The cause of its failure.
    pub cause: Option<&'a str>,
}

impl<'a> EndedRun<'a> {
    /// Returns what counts of a summary; `None` for a run that is open.
    #[must_use]
    pub fn of(row: &'a RunSummary) -> Option<Self> {
        let cost = row.cost.as_ref();
        row.status.is_over().then(|| Self {
            started: row.started,
            ended: row.since,
            status: row.status,
            brain: &row.brain,
            active: row.active.map(micros),
            usage: row.usage,
            cost: cost.map(|cost| cost.known).unwrap_or_default(),
            currency: cost.and_then(|cost| cost.currency.as_deref()),
            is_partial: row.is_partly_priced(),
            // The summaries of an earlier version have only the whole message.
            cause: row.cause.as_deref().or(row.why.as_deref()).filter(|_| row.status == Status::Failed),
        })
    }
}

/// The bucket and the status of a group, and the numbers of its brain, currency and cause.
type GroupKey = (u32, Status, usize, Option<usize>, Option<usize>);

/// Adds up runs that are over, one after the other.
#[derive(Debug, Default)]
pub struct EndedFold {
    texts: HashMap<Arc<str>, usize>,
    places: HashMap<GroupKey, usize>,
    groups: Vec<EndedRuns>,
}

impl EndedFold {
    /// Adds a run that ended in a bucket.
    pub fn add(&mut self, bucket: u32, run: &EndedRun<'_>) {
        let (brain, currency) = (self.number(run.brain), run.currency.map(|text| self.number(text)));
        let cause = run.cause.map(|text| self.number(text));
        let new = self.groups.len();
        let place = *self.places.entry((bucket, run.status, brain, currency, cause)).or_insert(new);
        if place == new {
            self.groups.push(EndedRuns {
                bucket,
                status: run.status,
                brain: self.text(run.brain),
                currency: run.currency.map(|text| self.text(text)),
                cause: run.cause.map(|text| self.text(text)),
                runs: 0,
                first: run.ended,
                last: run.ended,
                usage: Usage::default(),
                cost: Money::default(),
                partial: 0,
                active: Vec::new(),
            });
        }
        let Some(group) = self.groups.get_mut(place) else { return };
        group.runs += 1;
        group.first = group.first.min(run.ended);
        group.last = group.last.max(run.ended);
        let Usage { input, output, cached, .. } = run.usage;
        group.usage += Usage { input, output, cached, ..Usage::default() };
        group.cost += run.cost;
        group.partial += u64::from(run.is_partial);
        group.active.extend(run.active);
    }

    /// Returns the groups.
    #[must_use]
    pub fn groups(self) -> Vec<EndedRuns> {
        self.groups
    }

    fn number(&mut self, text: &str) -> usize {
        let next = self.texts.len();
        match self.texts.get(text) {
            Some(number) => *number,
            None => *self.texts.entry(text.into()).or_insert(next),
        }
    }

    fn text(&self, text: &str) -> Arc<str> {
        self.texts.get_key_value(text).map_or_else(|| text.into(), |(known, _)| Arc::clone(known))
    }
}

/// What figures count of a model in a run that is over.
#[derive(Debug, Clone, Copy)]
pub struct ModelShare<'a> {
    /// The model, as in [`ModelUse`].
    pub model: &'a str,
    /// The tokens of its answers.
    pub usage: Usage,
    /// Their known cost.
    pub cost: Money,
    /// Whether their cost is not known in full.
    pub is_partial: bool,
}

impl<'a> ModelShare<'a> {
    pub(super) fn of(used: &'a ModelUse) -> Self {
        Self { model: &used.model, usage: used.usage, cost: used.known, is_partial: used.is_partial }
    }
}

/// Adds up what models have done, one run after the other.
#[derive(Debug, Default)]
pub struct ModelFold {
    /// By bucket: a bucket has few models.
    groups: HashMap<u32, Vec<ModelRuns>>,
}

impl ModelFold {
    /// Adds what a model has done in a run that ended in a bucket; `currency` is that of the run's cost.
    pub fn add(&mut self, bucket: u32, currency: Option<&str>, used: ModelShare<'_>) {
        let groups = self.groups.entry(bucket).or_default();
        let known =
            groups.iter().position(|group| *group.model == *used.model && group.currency.as_deref() == currency);
        let place = known.unwrap_or_else(|| {
            let (model, currency) = (used.model.into(), currency.map(Arc::from));
            let (usage, cost) = (Usage::default(), Money::default());
            groups.push(ModelRuns { bucket, model, currency, runs: 0, usage, cost, partial: 0 });
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(place) else { return };
        let Usage { input, output, cached, .. } = used.usage;
        group.runs += 1;
        group.usage += Usage { input, output, cached, ..Usage::default() };
        group.cost += used.cost;
        group.partial += u64::from(used.is_partial);
    }

    /// Returns the groups.
    #[must_use]
    pub fn groups(self) -> Vec<ModelRuns> {
        self.groups.into_values().flatten().collect()
    }
}
