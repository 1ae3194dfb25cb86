//! Filters for lists that a store answers without loading a log.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::encoding::skip::is_default;
use crate::record::{
    Money, OlderAnswer, Path, Pending, RunId, RunSummary, Seq, Start, Starter, Status, Timer, Timestamp, TriggerId,
};

/// Filter for a list of runs. Unset fields do not narrow it.
#[derive(Debug, Clone, PartialEq, Eq, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option)))]
#[non_exhaustive]
pub struct RunFilter {
    /// Only runs whose id begins with this.
    #[builder(setter(into))]
    pub prefix: Option<String>,
    /// Only runs with one of these statuses; empty matches all.
    #[builder(setter(!strip_option))]
    pub status: Vec<Status>,
    /// Only runs whose id ends with one of these; empty matches all. No store has an index of ends, but the ids are read fast.
    #[builder(setter(!strip_option))]
    pub ends: Vec<String>,
    /// Only runs of the brain with this title.
    #[builder(setter(into))]
    pub brain: Option<String>,
    /// Only runs of this user.
    #[builder(setter(into))]
    pub user: Option<String>,
    /// Only runs whose models have called this tool. No store has an index of tools, so a list reads rows until it is full.
    #[builder(setter(into))]
    pub tool: Option<String>,
    /// Only runs in which this model has answered, as `provider/model` or without the provider. No store has an index of models of runs.
    #[builder(setter(into))]
    pub model: Option<String>,
    /// Only runs with at least this known cost, in whichever currency. No store has an index of costs.
    pub min_cost: Option<Money>,
    /// Only runs with at most this known cost; a run that has asked no model costs nothing.
    pub max_cost: Option<Money>,
    /// Only runs with this tag. No store has an index of tags, so a list reads rows until it is full.
    #[builder(setter(into))]
    pub tag: Option<String>,
    /// Only runs of this conversation.
    #[builder(setter(into))]
    pub conversation: Option<String>,
    /// Only runs that belong to a conversation, or have its prompts as their history.
    #[builder(setter(!strip_option))]
    pub conversations: bool,
    /// Only runs with a pending item for a person, as [`PendingFilter::person`].
    #[builder(setter(!strip_option))]
    pub person: bool,
    /// Only runs whose last event was appended at or after this time.
    pub since: Option<Timestamp>,
    /// Only runs whose last event was appended before this time.
    pub before: Option<Timestamp>,
    /// Only runs with work to do without a new signal: running ones, ones with something due by this time, and those with
    /// [`RunSummary::mail`], whose worker may have died.
    pub due: Option<Timestamp>,
    /// Only runs that a list shows after this place.
    pub after: Option<RunCursor>,
    /// The largest number of results.
    pub limit: Option<usize>,
}

/// The place of a run in a list of runs. Its order is the order of the list: latest start first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunCursor {
    /// When the run was started.
    pub started: Timestamp,
    /// The run.
    pub run: RunId,
}

impl Ord for RunCursor {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.started, &other.run).cmp(&(self.started, &self.run))
    }
}

impl PartialOrd for RunCursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl RunFilter {
    /// Returns whether a run matches, ignoring `limit`, and `person`, which a row does not tell.
    #[must_use]
    pub fn passes(&self, row: &RunSummary) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| row.run.as_str().starts_with(prefix))
            && (self.ends.is_empty() || self.ends.iter().any(|end| row.run.as_str().ends_with(end)))
            && (self.status.is_empty() || self.status.contains(&row.status))
            && self.brain.as_ref().is_none_or(|brain| *row.brain == **brain)
            && (self.user.is_none() || row.user == self.user)
            && self.tool.as_ref().is_none_or(|tool| row.tools.contains(tool))
            && self.model.as_ref().is_none_or(|model| row.models.iter().any(|used| used.is(model)))
            && self.min_cost.is_none_or(|cost| row.known_cost() >= cost)
            && self.max_cost.is_none_or(|cost| row.known_cost() <= cost)
            && self.tag.as_ref().is_none_or(|tag| row.tags.contains(tag))
            && (self.conversation.is_none() || row.conversation == self.conversation)
            && (!self.conversations || row.converses())
            && self.since.is_none_or(|since| row.at >= since)
            && self.before.is_none_or(|before| row.at < before)
            && self.due.is_none_or(|due| row.has_work(due) || row.mail)
            && self.after.as_ref().is_none_or(|after| row.cursor() > *after)
    }
}

impl RunSummary {
    /// Returns the run's place in lists.
    #[must_use]
    pub fn cursor(&self) -> RunCursor {
        RunCursor { started: self.started, run: self.run.clone() }
    }

    /// Returns the known cost of the run's model calls.
    #[must_use]
    pub fn known_cost(&self) -> Money {
        self.cost.as_ref().map(|cost| cost.known).unwrap_or_default()
    }

    /// Returns whether the run belongs to a conversation, or has the prompts of one as its history.
    #[must_use]
    pub const fn converses(&self) -> bool {
        self.conversation.is_some() || self.after.is_some()
    }

    /// Returns whether the run has work at a time without a new signal.
    #[must_use]
    pub fn has_work(&self, now: Timestamp) -> bool {
        match self.status {
            Status::Running => true,
            Status::Waiting => self.wake.is_some_and(|wake| wake <= now),
            Status::Paused | Status::Completed | Status::Failed | Status::Cancelled => false,
        }
    }
}

/// Filter for a list of pending items. Unset fields do not narrow it.
#[derive(Debug, Clone, PartialEq, Eq, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option)))]
#[non_exhaustive]
pub struct PendingFilter {
    /// Only items of this run.
    pub run: Option<RunId>,
    /// Only items of runs of this user.
    #[builder(setter(into))]
    pub user: Option<String>,
    /// Only items that wait for a person: an approval, a higher limit, or a person's answer.
    #[builder(setter(!strip_option))]
    pub person: bool,
    /// Only items that wait for a webhook with this name and identifier.
    pub webhook: Option<(String, String)>,
    /// Only items that wait for the end of a child run.
    #[builder(setter(!strip_option))]
    pub child: bool,
    /// Only items that a list shows after this place.
    pub after: Option<PendingCursor>,
    /// The largest number of results.
    pub limit: Option<usize>,
}

/// The place of a pending item in a list. Its order is the order of the list: oldest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PendingCursor {
    /// When the item began to wait.
    pub at: Timestamp,
    /// The run.
    pub run: RunId,
    /// The event that began the wait.
    pub since: Seq,
    /// The waiting call.
    pub call: Path,
}

impl PendingItem {
    /// Returns the item's place in lists.
    #[must_use]
    pub fn cursor(&self) -> PendingCursor {
        let (since, call) = (self.pending.since, self.pending.call.clone());
        PendingCursor { at: self.at, run: self.run.clone(), since, call }
    }
}

impl PendingFilter {
    /// Returns whether an item matches, ignoring `limit`.
    #[must_use]
    pub fn passes(&self, item: &PendingItem) -> bool {
        let kind = &item.pending.kind;
        let for_webhook = |name: &str, identifier: &str| {
            kind.waits().iter().any(|wait| wait.webhook == name && wait.identifier == identifier)
        };
        self.run.as_ref().is_none_or(|run| item.run == *run)
            && (self.user.is_none() || item.about.user == self.user)
            && (!self.person || kind.is_for_person())
            && self.webhook.as_ref().is_none_or(|(name, identifier)| for_webhook(name, identifier))
            && (!self.child || kind.waits().iter().any(|wait| wait.child().is_some()))
            && self.after.as_ref().is_none_or(|after| item.cursor() > *after)
    }
}

/// Filter for a list of timers. Unset fields do not narrow it.
#[derive(Debug, Clone, PartialEq, Eq, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option)))]
#[non_exhaustive]
pub struct TimerFilter {
    /// Only the timer with this id.
    pub id: Option<TriggerId>,
    /// Only timers due at or before this time.
    pub due: Option<Timestamp>,
    /// Only timers of this owner.
    pub owner: Option<TimerOwner>,
    /// The largest number of results.
    pub limit: Option<usize>,
}

/// The owner of a timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerOwner {
    /// A conversation.
    Conversation(String),
    /// A user, outside of conversations.
    User(String),
    /// A run without conversation or user, together with the runs that its timers start.
    Origin(RunId),
}

impl TimerFilter {
    /// Returns the filter for the timers that a run may see: those of its conversation, else of its user, else its own.
    #[must_use]
    pub fn of(run: &RunId, start: &Start) -> Self {
        let owner = match (&start.conversation, &start.user) {
            (Some(conversation), _) => TimerOwner::Conversation(conversation.clone()),
            (None, Some(user)) => TimerOwner::User(user.clone()),
            (None, None) => {
                TimerOwner::Origin(start.fired.as_ref().map_or_else(|| run.clone(), |fired| fired.origin.clone()))
            }
        };
        Self { owner: Some(owner), ..Self::default() }
    }

    /// Returns whether a timer matches, ignoring `most`.
    #[must_use]
    pub fn passes(&self, timer: &Timer) -> bool {
        let (conversation, user) = (&timer.conversation, &timer.user);
        self.id.as_ref().is_none_or(|id| timer.trigger.id == *id)
            && self.due.is_none_or(|due| timer.trigger.due <= due)
            && self.owner.as_ref().is_none_or(|owner| match owner {
                TimerOwner::Conversation(id) => conversation.as_ref() == Some(id),
                TimerOwner::User(name) => conversation.is_none() && user.as_ref() == Some(name),
                TimerOwner::Origin(run) => conversation.is_none() && user.is_none() && timer.origin == *run,
            })
    }
}

/// A call that waits for input, with its run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PendingItem {
    /// The run.
    pub run: RunId,
    /// The title of its brain.
    pub brain: Arc<str>,
    /// When it began to wait.
    pub at: Timestamp,
    /// The call, and its cause of waiting.
    pub pending: Pending,
    /// What else a list shows of the run.
    pub about: WaitingRun,
}

/// What lists of pending items show of a run. It can be decoded from the JSON of a [`RunSummary`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WaitingRun {
    /// The user it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Who started it, if the start says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starter: Option<Arc<Starter>>,
    /// The latest answers that are older than their questions: what is asked now may follow from the answer to another question.
    #[serde(skip_serializing_if = "is_default")]
    pub older_answers: Arc<Vec<OlderAnswer>>,
}

impl From<&RunSummary> for WaitingRun {
    fn from(row: &RunSummary) -> Self {
        let (user, starter) = (row.user.clone(), row.starter.clone());
        Self { user, starter, older_answers: Arc::clone(&row.older_answers) }
    }
}

/// A search for events by their text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventSearch {
    /// The text that the JSON of an event contains, in any case.
    pub text: String,
    /// Only events of these runs.
    pub runs: RunFilter,
    /// Only the first match of each run.
    pub once: bool,
    /// The largest number of matches.
    pub limit: usize,
    /// The search ends before the run with which it would have read more events than this, but not before the first run.
    pub scan: Option<usize>,
}

impl EventSearch {
    /// Creates a search in all runs with a largest number of matches.
    #[must_use]
    pub fn new(text: impl Into<String>, limit: usize) -> Self {
        Self { text: text.into(), limit, ..Self::default() }
    }

    /// Searches only the runs that match a filter.
    #[must_use]
    pub fn within(self, runs: RunFilter) -> Self {
        Self { runs, ..self }
    }

    /// Finds only the first match of each run.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Sets about how many events may be read.
    #[must_use]
    pub fn scan(self, events: usize) -> Self {
        Self { scan: Some(events), ..self }
    }
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventMatches {
    /// The matches, newest run first.
    pub found: Vec<EventMatch>,
    /// The last searched run, if [`EventSearch::scan`] has ended the search: it continues after that run.
    pub capped: Option<RunCursor>,
}

impl EventMatches {
    /// Creates the outcome of a search.
    #[must_use]
    pub const fn new(found: Vec<EventMatch>, capped: Option<RunCursor>) -> Self {
        Self { found, capped }
    }
}

/// A search hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EventMatch {
    /// The run.
    pub run: RunId,
    /// The event's number.
    pub seq: Seq,
    /// The event's line of JSON.
    pub line: String,
}

impl EventMatch {
    /// Creates a search hit.
    #[must_use]
    pub const fn new(run: RunId, seq: Seq, line: String) -> Self {
        Self { run, seq, line }
    }
}
