//! Questions to a store that are answered without loading a log.

use std::sync::Arc;

use serde::Serialize;

use crate::record::{Pending, PendingKind, RunId, RunSummary, Seq, Start, Status, Timer, Timestamp, TriggerId};

/// Says which runs are listed. What is not given does not narrow the list.
#[derive(Debug, Clone, PartialEq, Eq, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option)))]
pub struct RunFilter {
    /// Their ids begin with this.
    #[builder(setter(into))]
    pub prefix: Option<String>,
    /// They have one of these statuses; empty for any.
    #[builder(setter(!strip_option))]
    pub status: Vec<Status>,
    /// Their brain has this title.
    #[builder(setter(into))]
    pub brain: Option<String>,
    /// They belong to this user.
    #[builder(setter(into))]
    pub user: Option<String>,
    /// They are a part of this conversation.
    #[builder(setter(into))]
    pub conversation: Option<String>,
    /// They are a part of some conversation, or have its prompts as their history.
    #[builder(setter(!strip_option))]
    pub conversations: bool,
    /// Their last event was appended at or after this moment.
    pub since: Option<Timestamp>,
    /// Their last event was appended before this moment.
    pub before: Option<Timestamp>,
    /// They have work although nobody sends anything: they are running, or what is due in them is due by this moment. Also
    /// those with [`RunSummary::mail`], whose worker may have died.
    pub due: Option<Timestamp>,
    /// No more than these.
    pub most: Option<usize>,
}

impl RunFilter {
    /// Says whether a run passes; `most` is not looked at.
    #[must_use]
    pub fn passes(&self, row: &RunSummary) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| row.run.as_str().starts_with(prefix))
            && (self.status.is_empty() || self.status.contains(&row.status))
            && self.brain.as_ref().is_none_or(|brain| *row.brain == **brain)
            && (self.user.is_none() || row.user == self.user)
            && (self.conversation.is_none() || row.conversation == self.conversation)
            && (!self.conversations || row.converses())
            && self.since.is_none_or(|since| row.at >= since)
            && self.before.is_none_or(|before| row.at < before)
            && self.due.is_none_or(|due| row.has_work(due) || row.mail)
    }
}

impl RunSummary {
    /// Says whether the run is a part of a conversation, or has the prompts of one as its history.
    #[must_use]
    pub const fn converses(&self) -> bool {
        self.conversation.is_some() || self.after.is_some()
    }

    /// Says whether the run has work at a moment although nobody sends anything.
    #[must_use]
    pub fn has_work(&self, now: Timestamp) -> bool {
        match self.status {
            Status::Running => true,
            Status::Waiting => self.wake.is_some_and(|wake| wake <= now),
            Status::Paused | Status::Completed | Status::Failed | Status::Cancelled => false,
        }
    }
}

/// Says which of the things that wait are listed. What is not given does not narrow the list.
#[derive(Debug, Clone, PartialEq, Eq, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option)))]
pub struct PendingFilter {
    /// They are of this run.
    pub run: Option<RunId>,
    /// They wait for a person: an approval, more than a limit allows, or an answer of a person.
    #[builder(setter(!strip_option))]
    pub person: bool,
    /// They wait for a webhook with this name and identifier.
    pub webhook: Option<(String, String)>,
    /// No more than these.
    pub most: Option<usize>,
}

impl PendingFilter {
    /// Says whether something that waits passes; `most` is not looked at.
    #[must_use]
    pub fn passes(&self, waiter: &PendingItem) -> bool {
        let kind = &waiter.pending.kind;
        let for_person = match kind {
            PendingKind::Approval { .. } | PendingKind::Budget { .. } => true,
            PendingKind::Answer { waits } => waits.iter().any(|wait| wait.person),
        };
        let for_webhook = |name: &str, identifier: &str| match kind {
            PendingKind::Approval { .. } | PendingKind::Budget { .. } => false,
            PendingKind::Answer { waits } => {
                waits.iter().any(|wait| wait.webhook == name && wait.identifier == identifier)
            }
        };
        self.run.as_ref().is_none_or(|run| waiter.run == *run)
            && (!self.person || for_person)
            && self.webhook.as_ref().is_none_or(|(name, identifier)| for_webhook(name, identifier))
    }
}

/// Says which timers are listed. What is not given does not narrow the list.
#[derive(Debug, Clone, PartialEq, Eq, Default, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option)))]
pub struct TimerFilter {
    /// It is this one.
    pub id: Option<TriggerId>,
    /// They are due at or before this moment.
    pub due: Option<Timestamp>,
    /// Whose they are.
    pub owner: Option<TimerOwner>,
    /// No more than these.
    pub most: Option<usize>,
}

/// Whose a timer is. What has no name is nobody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerOwner {
    /// A conversation's.
    Conversation(String),
    /// A user's, outside of conversations.
    User(String),
    /// A run's that belongs to nobody, and of those that its timers start.
    Origin(RunId),
}

impl TimerFilter {
    /// Makes the filter for the timers of a run, by how the run was started: those of its conversation, of its user where
    /// it is a part of none, or its own.
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

    /// Says whether a timer passes; `most` is not looked at.
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

/// Something that waits for somebody, with the run it is in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PendingItem {
    /// The run.
    pub run: RunId,
    /// The title of its brain.
    pub brain: Arc<str>,
    /// When it began to wait.
    pub at: Timestamp,
    /// What waits, and for what.
    pub pending: Pending,
}

/// An event that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventMatch {
    /// The run.
    pub run: RunId,
    /// The event's number.
    pub seq: Seq,
    /// The event's line of JSON.
    pub line: String,
}
