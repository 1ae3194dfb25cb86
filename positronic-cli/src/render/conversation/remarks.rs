//! Remarks in a conversation's Markdown: decisions, limits and grants, and failed or cancelled runs.

use positronic_core::projection::timeline::{BudgetOutcome, Node, NodeKind, Timeline};
use positronic_core::record::{LoopOutcome, Path, Segment, Timestamp};

use crate::render::asks;
use crate::render::words::{self, ended};

/// Remarks about a run, as sentences without a full stop.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    /// Each with the loop that it is about, or the run, and its time.
    remarks: Vec<(Path, Timestamp, String)>,
    /// The end of the run, if it failed or was cancelled.
    pub(super) end: Option<String>,
}

impl Remarks {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut remarks = Self::default();
        // Questions and grants precede the end of a loop at the same time.
        let is_stage = |node: &&Node| matches!(node.kind, NodeKind::Stage(_));
        timeline.nodes().filter(|node| !is_stage(node)).for_each(|node| remarks.add(timeline, node));
        timeline.nodes().filter(is_stage).for_each(|node| remarks.add(timeline, node));
        remarks.remarks.sort_by_key(|(_, at, _)| *at);
        remarks.end = timeline.ending().and_then(ended).map(|(word, rest)| match word {
            "cancelled" => format!("was cancelled{rest}"),
            word => format!("{word}{rest}"),
        });
        remarks
    }

    /// Lists the remarks about a loop in `from..to`, including those about the run while the loop was open; for the root, those
    /// about the run while no loop was open.
    pub(super) fn between(&self, path: &Path, from: Timestamp, to: Timestamp) -> impl Iterator<Item = &str> {
        let is_here = move |(at, when, _): &&(Path, Timestamp, String)| at == path && from <= *when && *when < to;
        self.remarks.iter().filter(is_here).map(|(_, _, said)| said.as_str())
    }

    fn add(&mut self, timeline: &Timeline, node: &Node) {
        let currency = timeline.currency.as_deref();
        let at = node.started.unwrap_or_default();
        match &node.kind {
            NodeKind::Budget(budget) => {
                let path = whose(timeline, node);
                let asks = asks(budget.kind, budget.limit, budget.used, budget.shared, currency);
                self.remarks.push((path.clone(), at, asks));
                let at = match &budget.outcome {
                    Some(BudgetOutcome::Decided { at, .. } | BudgetOutcome::Expired { at }) => *at,
                    _ => return,
                };
                let outcome = budget.outcome.as_ref().map(|outcome| words::budget(outcome, currency));
                self.remarks.push((path, at, outcome.unwrap_or_default()));
            }
            NodeKind::Stage(stage) => {
                let text = match &stage.outcome {
                    Some(LoopOutcome::MaxIterations) => "ended by its limit of iterations".to_owned(),
                    Some(LoopOutcome::Limit { limit }) => format!("ended by a limit of {}", limit.noun()),
                    Some(LoopOutcome::Stopped { message, .. }) => message.clone(),
                    // A failed loop fails its brain, whose end has the reason.
                    _ => return,
                };
                self.remarks.push((node.path.clone(), node.ended.unwrap_or_default(), text));
            }
            _ => {}
        }
    }
}

/// Returns the loop that a budget question belongs to: the run's own brain asks in the stage that is open.
fn whose(timeline: &Timeline, node: &Node) -> Path {
    if !node.path.is_root() {
        return node.path.clone();
    }
    let asking = node.parent.and_then(|parent| timeline.node(parent)).map(|parent| parent.path.clone());
    match asking.unwrap_or_default().segments().next() {
        Some(Segment::Stage(name)) => Path::root().stage(name),
        _ => Path::root(),
    }
}
