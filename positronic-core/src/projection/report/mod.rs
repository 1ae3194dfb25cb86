//! A run as a report: every step with its decision, the reason for it, and what came of it.
//!
//! [`RunReport`] is a fold of the log into plain data, for whoever writes it down: the command line as Markdown and JSON. It
//! is there for every run, whatever has become of it so far.
//!
//! | what the report has | events that it is made of |
//! |---|---|
//! | the head: title, options, times, ending | `BRAIN_START`, `BRAIN_COMPLETE`, `BRAIN_ERROR`, `BRAIN_CANCELLED` at the root; the first and the last event |
//! | a part for each step, loop and nested brain, and how it ended | `STEP_START`, `STEP_COMPLETE`, `LOOP_START`, `LOOP_COMPLETE`, `BRAIN_*` |
//! | an iteration: a decision, its reason, what was said | `LOOP_ITERATION`, `LOOP_MODEL_CALL`, `LOOP_MODEL_RESULT`, `LOOP_MODEL_RETRY` |
//! | an answer that was refused | `LOOP_ANSWER_REFUSED` |
//! | a call with its input and its result | `LOOP_TOOL_CALL`, `LOOP_APPROVAL_DECIDED` (edited arguments), `LOOP_TOOL_RESULT` |
//! | notes on a call: retries, approvals, waits, what it showed, brains that it ran | `LOOP_TOOL_RETRY`, `LOOP_APPROVAL_*`, `LOOP_WAIT`, `LOOP_RESUME`, `LOOP_OUTPUT`, `LOOP_TRIGGER`, `LOOP_BRAIN_*` |
//! | notes on a part: messages, limits, budgets, compactions, failed plugins | `LOOP_MESSAGE`, `LOOP_LIMIT`, `LOOP_MAX_ITERATIONS`, `LOOP_STOPPED`, `BUDGET_*`, `LOOP_COMPACTED`, `LOOP_PLUGIN_FAILED`, `STEP_RETRY`, `STEP_BLOCKED` |
//! | notes on the run: pauses, another version | `BRAIN_PAUSED`, `BRAIN_RESUMED`, `BRAIN_MIGRATED` |
//! | tokens and costs | those of [`Costs`] |
//! | nothing | `RUN_CLAIMED`, `RUN_RELEASED`, `RUN_NOT_CLAIMED`, `VALUE_RECORDED`, `LOOP_TOOL_START`, `LOOP_EXIT`, `LOOP_PLUGIN_CHANGED` |

mod fold;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::cost::{Costs, Spent};
use crate::record::{Event, Failure, FileOutput, LoopOutcome, Path, PriceTable, StageKind, Timestamp, ToolResult};

/// What a run did, step by step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// The brain's title.
    pub title: String,
    /// What the run was started with.
    pub options: Value,
    /// Whom it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When it began.
    pub began: Timestamp,
    /// When something was recorded last.
    pub last: Timestamp,
    /// How it ended; none while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// What happened to the run as a whole, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its steps, loops and nested brains, in the order in which they began.
    pub parts: Vec<ReportPart>,
    /// The files that it made, in order; one that was written again stands there as it was last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileOutput>,
    /// What it used and cost.
    pub costs: Costs,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ending {
    /// Well.
    Completed {
        /// What its callers get.
        result: Value,
    },
    /// It failed.
    Failed(Failure),
    /// Somebody cancelled it.
    Cancelled {
        /// Who.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A step, a loop or a nested brain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportPart {
    /// Where in the tree it is.
    pub path: Path,
    /// What it is.
    pub kind: StageKind,
    /// The brain's title, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What opened it: a loop's opening message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What happened to it as a whole, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its iterations; of a step, the questions that it asked a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<ReportIteration>,
    /// How a loop ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<LoopOutcome>,
    /// Whether it is over.
    pub over: bool,
    /// How long a step took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

/// One iteration of a loop: a decision, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportIteration {
    /// Where in the tree it is.
    pub path: Path,
    /// What was asked, where a step asks a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The answers that were no decision that fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedAnswer>,
    /// What the model thought: the reason for its decision.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the model said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// What else happened in it, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its calls, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReportCall>,
    /// Whether the model has answered.
    pub answered: bool,
    /// How long the answer took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// What its answers used and cost, those that were refused among them.
    pub spent: Spent,
}

/// An answer that was no decision that fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedAnswer {
    /// What is wrong with it.
    pub message: String,
    /// What the model wrote.
    pub answer: String,
}

/// A call of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportCall {
    /// Where in the tree it is.
    pub path: Path,
    /// The tool.
    pub tool: String,
    /// What it was called with.
    pub arguments: Arc<Value>,
    /// What a person made of that before it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<Value>,
    /// What happened to it, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What came of it; none while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// How long it took, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

impl RunReport {
    /// Folds a log; none where it has not begun.
    ///
    /// ```
    /// use positronic_core::model::scripted::{Reply, ScriptedModel};
    /// use positronic_core::prelude::*;
    /// use positronic_core::projection::RunReport;
    /// use positronic_core::record::PriceTable;
    /// use positronic_core::testing::Test;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
    /// let story = Test::new(ScriptedModel::new([Reply::text("Good morning.")])).run(&greeter, ()).await;
    ///
    /// let report = RunReport::of(story.log().iter().map(|event| &**event), &PriceTable::bundled()).unwrap();
    /// assert_eq!(report.parts[0].iterations[0].said, "Good morning.");
    /// # }
    /// ```
    #[must_use]
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>, prices: &PriceTable) -> Option<Self> {
        fold::folded(events, prices)
    }

    /// Walks all iterations of all loops.
    pub fn iterations(&self) -> impl Iterator<Item = &ReportIteration> {
        self.parts.iter().filter(|part| part.kind == StageKind::Loop).flat_map(|part| &part.iterations)
    }

    /// Walks all calls.
    pub fn calls(&self) -> impl Iterator<Item = &ReportCall> {
        self.iterations().flat_map(|iteration| &iteration.calls)
    }
}
