//! Summaries for lists, which need not load logs: one row per run.
//!
//! An append contains the new row, and the [pending items](super::pending_kind); a store writes them with the events, in one transaction.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::starter::Starter;
use crate::record::encoding::micros;
use crate::record::encoding::skip::is_default;
use crate::record::ids::{Epoch, RunId, Seq, Timestamp};
use crate::record::money::Money;
use crate::record::path::Path;
use crate::record::prompt::older_answer::OlderAnswer;
use crate::record::request::model_response::Usage;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// Work is in flight or can start.
    Running,
    /// Nothing can happen until an answer arrives or a time is up, such as that of a retry.
    Waiting,
    /// A person paused it, or the engine parked it: [`RunSummary::parked`].
    Paused,
    /// It completed.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// All statuses, in the order in which a run reaches them.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Waiting, Self::Paused, Self::Completed, Self::Failed, Self::Cancelled];

    /// Returns the status as a word, as in logs and lists.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether the run is over.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// The reason why a worker that found work in a run could not claim it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClaimRefusal {
    /// It does not know the run's brain.
    NoBrain,
    /// The code of the run's brain has changed.
    Changed,
    /// Its prices cannot enforce the run's money limit.
    Prices,
    /// It has no suitable model for the run.
    NoModel,
}

/// A worker's claim of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The number of the claim.
    pub epoch: Epoch,
    /// The worker.
    pub owner: Arc<str>,
    /// Whether the worker has released the run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub released: bool,
}

/// Consecutive ends of the process during the same work of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crashes {
    /// The number of crashes.
    pub count: u32,
    /// The work, as the object of a sentence.
    pub during: String,
    /// When the first one was found.
    pub first: Timestamp,
    /// When the last one was found.
    pub last: Timestamp,
}

impl Crashes {
    /// Says in a sentence what happened, and whether the process is restarted too fast.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { count, during, first, last } = self;
        let mut sentence = format!("the process ended {count} times in a row during {during}");
        let restarts = count.saturating_sub(1);
        if restarts > 0 {
            let apart = last.since(*first) / restarts;
            let seconds = apart.as_secs_f64();
            _ = write!(sentence, ", every {seconds:.1} s");
            if apart < TOO_FAST {
                sentence.push_str(
                    "; its supervisor restarts it too fast: let it wait longer before a restart, as with `RestartSec=` of systemd",
                );
            }
        }
        sentence
    }
}

/// A process that ends this soon after its start needs longer pauses between its restarts.
const TOO_FAST: Duration = Duration::from_secs(10);

/// What the model calls of a run have cost, by the prices with which its limits of money count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunCost {
    /// The known cost, stored in billionths of the currency's unit so that stores can add it up.
    #[serde(rename = "nanos", with = "nanos")]
    pub known: Money,
    /// The currency; `None` if no cost is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Arc<str>>,
    /// Whether the cost of a model's answer is unknown, so that `known` is only a part.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_partial: bool,
}

/// Amounts of money as a number of billionths; for serde's `with`.
mod nanos {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Money;

    pub(super) fn serialize<S: Serializer>(amount: &Money, to: S) -> Result<S::Ok, S::Error> {
        amount.nanos().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Money, D::Error> {
        u64::deserialize(from).map(Money::of_nanos)
    }
}

/// What the answers of one model in a run come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUse {
    /// The model, as `provider/model`; the provider alone without a named model.
    pub model: Arc<str>,
    /// The tokens of its answers.
    pub usage: Usage,
    /// Their known cost, in the currency of the run's cost.
    #[serde(rename = "nanos", default, with = "nanos", skip_serializing_if = "is_default")]
    pub known: Money,
    /// Whether the cost of an answer is unknown.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_partial: bool,
}

impl ModelUse {
    /// Returns whether this is the model with a name, which may lack the provider.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        *self.model == *name || self.model.split_once('/').is_some_and(|(_, model)| model == name)
    }
}

/// What a run has done last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEvent {
    /// The type of the event, such as `LOOP_TOOL_START`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// Its path.
    pub path: Path,
    /// The tool of its call, or the model that it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
}

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// The title of its brain.
    pub brain: Arc<str>,
    /// The version of the brain's code.
    #[serde(default)]
    pub version: u32,
    /// The user it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Who started it, if the start says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starter: Option<Arc<Starter>>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The previous run in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
    /// The run and the event number it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<(RunId, Seq)>,
    /// The run that has started it as its child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Its status.
    pub status: Status,
    /// Why it waits, or how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The last event that says what the run does; `None` in the summaries of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event: Option<LastEvent>,
    /// What it is about, in one line: the message that began it, or its options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<str>>,
    /// Its result in one sentence. Until it has one, and if the result has no words, what the model said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<str>>,
    /// The path of the last loop that a limit of iterations, tokens, money or time has cut off, apart from those below calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<Path>,
    /// The path of the guard of its brain that did not pass, so that it ended without the later stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<Path>,
    /// The tools that its models have called, in the order of their first calls, at most 64.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: Arc<Vec<String>>,
    /// Since when it has this status.
    pub since: Timestamp,
    /// When it was started.
    pub started: Timestamp,
    /// When its last event was appended.
    pub at: Timestamp,
    /// The number of its next event.
    pub next: Seq,
    /// The tokens of its model calls. Those that a fork shares with its origin count only there, so that sums over runs are what was used.
    pub usage: Usage,
    /// How long it was running while a worker had claimed it; `None` in the summaries of an earlier version. A fork counts from
    /// its own first event.
    #[serde(default, with = "micros::optional", skip_serializing_if = "Option::is_none")]
    pub active: Option<Duration>,
    /// What its model calls have cost, without those that a fork shares; `None` if it has asked no model, or in the summaries of an earlier
    /// version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<RunCost>,
    /// What each model that has answered has used, in the order of their first answers: at most 16, the rest of the run's tokens is that of
    /// further ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub models: Arc<[ModelUse]>,
    /// The cause of its failure, the same for runs that failed alike: the innermost error without its place, numbers and ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The last claim of a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Why no worker can claim it although it has work; `None` if one has claimed it, or none has tried yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ClaimRefusal>,
    /// How often in a row the process ended during work on it; `None` after progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashes: Option<Crashes>,
    /// Whether the engine paused it, because the process ended too often during the same work. A retry continues it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub parked: bool,
    /// When something is due without a new signal: an expiry, or a delayed retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Timestamp>,
    /// Whether it waits for a webhook, and its worker has not released it. If that worker has died, it may have done so
    /// before it checked for early webhooks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mail: bool,
    /// The number of its pending items; `None` in the summaries of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<usize>,
    /// The latest answers that are older than their questions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub older_answers: Arc<Vec<OlderAnswer>>,
}

impl RunSummary {
    /// Returns whether the cost of an answer is unknown, as all of them are in the summaries of an earlier version.
    #[must_use]
    pub fn is_partly_priced(&self) -> bool {
        let has_tokens = self.usage.input.saturating_add(self.usage.output) > 0;
        let is_older = self.active.is_none() && self.models.is_empty() && has_tokens;
        self.cost.as_ref().map_or(is_older, |cost| cost.is_partial)
    }
}
