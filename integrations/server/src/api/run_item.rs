//! A run in a list, as JSON.

use std::collections::HashMap;

use positronic_core::record::{RunSummary, Seq, Status};
use positronic_core::store::{PendingFilter, StoreError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::time::Time;

/// A run in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunItem {
    #[serde(flatten)]
    row: RunRow,
    /// The number of its pending items.
    pending: usize,
}

/// What is known of a run without its log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunRow {
    pub(crate) id: String,
    /// The title of its brain.
    pub(crate) brain: String,
    /// The version of the brain's code.
    pub(crate) version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<String>,
    /// The previous run of its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<Origin>,
    /// The run that has started it as its child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    #[schemars(with = "StatusName")]
    pub(crate) status: Status,
    /// Why it waits or was parked, how it failed, or who cancelled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Its last event that says what it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_event: Option<LastEventItem>,
    /// What it is about, in one line: the message that began it, or its options. Absent if fields are redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// Its result in one sentence; until it has one, what the model said last. Absent if fields are redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    /// The path of the last loop that a limit has cut off, apart from those below calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cut_off: Option<String>,
    /// Since when it has this status.
    pub(crate) since: Time,
    pub(crate) started: Time,
    /// When its last event was appended.
    pub(crate) updated: Time,
    /// The number of its last event.
    pub(crate) head: u64,
    /// The tokens of all its model calls.
    pub(crate) usage: Value,
    /// How long it was running while a worker had claimed it, in milliseconds; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) active_ms: Option<u64>,
    /// What its model calls have cost; absent if it has asked no model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<CostItem>,
    /// The models that have answered, as `provider/model`, in the order of their first answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) models: Vec<String>,
    /// The cause of its failure, the same for runs that failed alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// The last worker that has claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<WorkerItem>,
    /// Why no worker can claim it although it has work: `no_brain`, `changed`, `prices` or `no_model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<Value>,
    /// Whether the engine paused it, because its process ended too often during the same work. A retry continues it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(crate) parked: bool,
    /// When something is due without a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wake: Option<Time>,
}

/// The status of a run.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
#[expect(dead_code, reason = "it is the schema of the core's type")]
pub(crate) enum StatusName {
    Running,
    Waiting,
    Paused,
    Completed,
    Failed,
    Cancelled,
}

/// The origin of a fork.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Origin {
    pub(crate) run: String,
    /// The last event that both share.
    pub(crate) seq: u64,
}

/// What a run has done last.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "LastEvent")]
pub(crate) struct LastEventItem {
    /// The type of the event, such as `LOOP_TOOL_START`.
    #[serde(rename = "type")]
    kind: String,
    /// Its path.
    path: String,
    /// The tool of its call, or the model that it asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// What the model calls of a run have cost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CostItem {
    /// The known cost, as a decimal number.
    pub(crate) amount: String,
    /// The currency; absent if no cost is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<String>,
    /// Whether the cost of an answer is unknown, so that the amount is only a part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(crate) partial: bool,
}

/// A worker that has claimed a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct WorkerItem {
    pub(crate) owner: String,
    pub(crate) epoch: u64,
    /// Whether it works on the run: it has not released the run, and is alive.
    pub(crate) live: bool,
}

/// Returns the number of a run's last event.
pub(crate) const fn head(row: &RunSummary) -> Seq {
    Seq(row.next.0.saturating_sub(1))
}

impl App {
    /// Returns what lists show of runs, with the numbers of their pending items.
    pub(crate) async fn run_items(&self, rows: &[RunSummary]) -> Result<Vec<RunItem>, StoreError> {
        let mut items = Vec::with_capacity(rows.len());
        let quotes = self.settings.redact.is_none();
        // A worker is asked about once, since a list has many runs of few workers.
        let mut workers: HashMap<&str, bool> = HashMap::new();
        for row in rows {
            let owner = row.claim.as_ref().filter(|claim| !claim.released).map(|claim| &*claim.owner);
            let live = match owner.and_then(|owner| workers.get(owner)) {
                Some(live) => *live,
                None => self.client.worker(row).await?.is_some(),
            };
            workers.extend(owner.map(|owner| (owner, live)));
            items.push(RunItem { row: run_row(row, live, quotes), pending: self.pending_of(row).await? });
        }
        Ok(items)
    }

    /// Returns the number of a run's pending items.
    async fn pending_of(&self, row: &RunSummary) -> Result<usize, StoreError> {
        match row.pending {
            // A run that is over waits for nothing.
            _ if row.status.is_over() => Ok(0),
            Some(pending) => Ok(pending),
            None => {
                let filter = PendingFilter::builder().run(row.run.clone()).build();
                Ok(self.client.store().pending(&filter).await?.len())
            }
        }
    }

    /// Returns what is known of a run without its log.
    pub(crate) async fn run_row(&self, row: &RunSummary) -> Result<RunRow, StoreError> {
        Ok(run_row(row, self.client.worker(row).await?.is_some(), self.settings.redact.is_none()))
    }
}

/// Returns what is known of a run without its log; `live` says whether its worker works on it, `quotes` whether texts of people and
/// models may be shown: in one line, the fields that they come from cannot be redacted.
fn run_row(row: &RunSummary, live: bool, quotes: bool) -> RunRow {
    RunRow {
        id: row.run.to_string(),
        brain: row.brain.to_string(),
        version: row.version,
        user: row.user.clone(),
        tags: row.tags.clone(),
        conversation: row.conversation.clone(),
        previous: row.after.as_ref().map(ToString::to_string),
        parent: row.parent.as_ref().map(ToString::to_string),
        forked_from: row.forked_from.as_ref().map(|(run, seq)| Origin { run: run.to_string(), seq: seq.0 }),
        status: row.status,
        why: row.why.clone().filter(|_| quotes || row.status != Status::Cancelled),
        last_event: row.last_event.as_ref().map(|last| LastEventItem {
            kind: last.kind.clone().into_owned(),
            path: last.path.to_string(),
            name: last.name.as_deref().map(str::to_owned),
        }),
        input: row.input.as_deref().filter(|_| quotes).map(str::to_owned),
        result: row.result.as_deref().filter(|_| quotes).map(str::to_owned),
        cut_off: row.cut_off.as_ref().map(ToString::to_string),
        since: row.since.into(),
        started: row.started.into(),
        updated: row.at.into(),
        head: head(row).0,
        usage: value(&row.usage),
        active_ms: row.active.map(|active| u64::try_from(active.as_millis()).unwrap_or(u64::MAX)),
        cost: row.cost.as_ref().map(|cost| CostItem {
            amount: cost.known.to_string(),
            currency: cost.currency.as_deref().map(str::to_owned),
            partial: cost.is_partial,
        }),
        models: row.models.iter().map(|used| used.model.to_string()).collect(),
        cause: row.cause.clone(),
        worker: row.claim.as_ref().map(|claim| WorkerItem {
            owner: claim.owner.to_string(),
            epoch: claim.epoch.0,
            live,
        }),
        refused: row.refused.as_ref().map(value),
        parked: row.parked,
        wake: row.wake.map(Time),
    }
}

/// Returns the JSON of a value of the core.
pub(crate) fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}
