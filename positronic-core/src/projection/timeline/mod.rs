//! The run as people see it: a tree of stages, iterations, answers and calls.
//!
//! A [`Timeline`] is a pure, incremental fold of a run's events, and of the [`Delta`]s that stream between them. It
//! has only data and no sentences, so that a terminal, a Markdown file, a web page and a protocol each render it in
//! their own words. [`Timeline::apply`] takes each event of a log once, in order, from the first one on; every prefix
//! gives a valid timeline. The time per event depends on its path and on the calls of its batch, not on the length of
//! the log.
//!
//! | node | events that begin and change it |
//! |---|---|
//! | [`Brain`](NodeKind::Brain): the run's own; a nested one stands in its stage or its call, and one of a group is a stage of its own below that of the group | `BRAIN_START`, `BRAIN_COMPLETE`, `BRAIN_ERROR`, `BRAIN_CANCELLED`; `LOOP_BRAIN_START` and `LOOP_BRAIN_COMPLETE` at a call |
//! | [`Stage`](NodeKind::Stage) | `BRAIN_START` (not started), `STEP_START`, `STEP_COMPLETE`; `BRANCH_CHOSEN`; `GROUP_START`, `REPEAT_ROUND`; `GUARD_CHECKED`; `STAGE_WAIT`, `STAGE_RESUME`; `UNDO_START` (not started), `UNDO_FAILED`; `LOOP_START`, `LOOP_COMPLETE` |
//! | [`Iteration`](NodeKind::Iteration) | `LOOP_ITERATION`; the next one, or the end of its loop, ends it |
//! | [`Answer`](NodeKind::Answer) | `LOOP_MODEL_CALL`, `LOOP_MODEL_RESULT`, `LOOP_MODEL_RETRY`, `LOOP_ANSWER_REFUSED`, deltas; `LOOP_ANSWER_BROKEN` only counts |
//! | [`Call`](NodeKind::Call) | `LOOP_TOOL_CALL`, `LOOP_TOOL_START`, `LOOP_APPROVAL_*`, `LOOP_WAIT`, `LOOP_RESUME`, `LOOP_TOOL_RESULT`, `LOOP_EXIT`, deltas of progress |
//! | [`Retry`](NodeKind::Retry) | `STEP_RETRY`, `LOOP_TOOL_RETRY` |
//! | [`Message`](NodeKind::Message) | `LOOP_START` with an input, `LOOP_MESSAGE` |
//! | [`File`](NodeKind::File), [`Widget`](NodeKind::Widget), [`Custom`](NodeKind::Custom) | `LOOP_OUTPUT` |
//! | [`Limit`](NodeKind::Limit) | `LOOP_MAX_ITERATIONS`, `LOOP_LIMIT` |
//! | [`Budget`](NodeKind::Budget) | `BUDGET_REQUESTED`, `BUDGET_DECIDED`, `BUDGET_EXPIRED` |
//! | [`Blocked`](NodeKind::Blocked), [`GuardReplaced`](NodeKind::GuardReplaced), [`Stopped`](NodeKind::Stopped) | `STEP_BLOCKED`, `LOOP_GUARD_REPLACED`, `LOOP_STOPPED` |
//! | [`Compaction`](NodeKind::Compaction), [`PluginFailure`](NodeKind::PluginFailure), [`Trigger`](NodeKind::Trigger), [`ChildRun`](NodeKind::ChildRun) | `LOOP_COMPACTED`, `LOOP_PLUGIN_FAILED`, `LOOP_TRIGGER`, `CHILD_START` |
//! | [`PluginUpdate`](NodeKind::PluginUpdate) | `LOOP_PLUGIN_UPDATE`; `LOOP_PLUGIN_CHANGED` or `LOOP_PLUGIN_FAILED` with its number |
//! | [`Pause`](NodeKind::Pause), [`Migration`](NodeKind::Migration), [`ClaimRefused`](NodeKind::ClaimRefused) | `BRAIN_PAUSED`, `BRAIN_RESUMED`, `BRAIN_MIGRATED`, `RUN_NOT_CLAIMED` |
//! | none; the run's worker | `RUN_CLAIMED`, `RUN_RELEASED` |
//! | none | `VALUE_RECORDED`, `LOOP_PLUGIN_CHANGED` of the plugin itself |
//!
//! Deltas begin no node: they stream into the open answer, or report the progress of a running call. A missing piece
//! shows as [`Stream::gap`], and the event of the whole answer replaces the stream.
//!
//! As JSON, a timeline is one flat list of nodes in the order of their ids, each with its parent, because brains nest
//! deeper than JSON parsers allow.

mod calls;
mod detail;
mod fold;
mod forks;
mod node;
mod node_lifecycle;
mod stream;
mod timeline_tree;

#[cfg(doc)]
use crate::record::Delta;

pub use detail::{
    Answer, AnswerNode, AnswerOutcome, BrainNode, BudgetNode, BudgetOutcome, CallNode, Ending, GroupProgress,
    GuardedValue, StageNode, Stream, StreamPart, WaitEnd, Waited, WidgetNode,
};
pub use node::{Node, NodeId, NodeKind, NodeStatus};
pub use timeline_tree::Timeline;
