//! What a prompt does not say of its run: who decided what and why, what was granted, and how it ended where that was not well.

use std::collections::HashMap;

use positronic_core::record::{Decision, Event, EventKind, LoopOutcome, Path, Timestamp};

use crate::display::{by, granted};
use crate::limits::asks;

/// What has happened in a run, in sentences without their end.
#[derive(Debug, Default)]
pub(super) struct Happened {
    /// What became of the questions about each call.
    calls: HashMap<Path, Vec<String>>,
    /// What was asked for and granted, and what ended a loop, with where and when.
    remarks: Vec<(Path, Timestamp, String)>,
    /// The loop that is open, of the run's own brain.
    open: Option<Path>,
    /// The currency in which limits of money count, once an answer has said it.
    currency: Option<String>,
    /// How the run ended, where it has failed or was cancelled.
    pub(super) end: Option<String>,
}

impl Happened {
    pub(super) fn of<'a>(log: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut happened = Self::default();
        for event in log {
            happened.fold(event);
        }
        happened
    }

    /// Lists what became of the questions about a call.
    pub(super) fn of_call(&self, call: &Path) -> &[String] {
        self.calls.get(call).map_or(&[], Vec::as_slice)
    }

    /// Lists what happened at a loop, and to the run while that loop was open, in `from..to`; under the root, what happened to
    /// the run while none was.
    pub(super) fn between(&self, path: &Path, from: Timestamp, to: Timestamp) -> impl Iterator<Item = &str> {
        let is_here = move |(at, when, _): &&(Path, Timestamp, String)| at == path && from <= *when && *when < to;
        self.remarks.iter().filter(is_here).map(|(_, _, said)| said.as_str())
    }

    fn fold(&mut self, event: &Event) {
        let why = |reason: &Option<String>| reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        if self.currency.is_none() {
            self.currency = event.currency().map(str::to_owned);
        }
        match &event.kind {
            EventKind::LoopApprovalDecided { decision, arguments, reason, actor, .. } => {
                let what = match (decision, arguments) {
                    (Decision::Approved, None) => "approved",
                    (Decision::Approved, Some(_)) => "approved with other arguments",
                    (Decision::Rejected, _) => "rejected",
                };
                self.call(event, format!("{what}{}{}", by(actor), why(reason)));
            }
            EventKind::LoopApprovalExpired {} => self.call(event, "nobody decided in time".to_owned()),
            EventKind::LoopApprovalWithdrawn { .. } => self.call(event, "the question was withdrawn".to_owned()),
            EventKind::BudgetRequested { kind, limit, used, shared, .. } => {
                self.remark(event, asks(*kind, *limit, *used, *shared, self.currency.as_deref()));
            }
            EventKind::BudgetDecided { decision: Decision::Approved, more, reason, actor, .. } => {
                let granted = granted(more, self.currency.as_deref());
                self.remark(event, format!("granted {granted}{}{}", by(actor), why(reason)));
            }
            EventKind::BudgetDecided { decision: Decision::Rejected, reason, actor, .. } => {
                self.remark(event, format!("refused more{}{}", by(actor), why(reason)));
            }
            EventKind::BudgetExpired {} => self.remark(event, "nobody granted more in time".to_owned()),
            EventKind::LoopStart { .. } if is_own(&event.path) => self.open = Some(event.path.clone()),
            EventKind::LoopComplete { outcome, .. } => {
                match outcome {
                    LoopOutcome::MaxIterations => self.remark(event, "ended by its limit of iterations".to_owned()),
                    LoopOutcome::Limit { limit } => self.remark(event, format!("ended by a limit of {}", limit.noun())),
                    LoopOutcome::Stopped { message, .. } => self.remark(event, message.clone()),
                    // A loop that fails fails its brain, which says why.
                    _ => {}
                }
                self.open = self.open.take().filter(|open| *open != event.path);
            }
            EventKind::BrainError(failure) if event.path.is_root() => {
                self.end = Some(format!("failed: {}", failure.message));
            }
            EventKind::BrainCancelled { actor, reason, .. } if event.path.is_root() => {
                self.end = Some(format!("was cancelled{}{}", by(actor), why(reason)));
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &Event, said: String) {
        self.calls.entry(event.path.clone()).or_default().push(said);
    }

    fn remark(&mut self, event: &Event, said: String) {
        let at = self.open.as_ref().filter(|_| event.path.is_root()).unwrap_or(&event.path);
        self.remarks.push((at.clone(), event.at, said));
    }
}

/// Says whether a loop is one of the run's own brain, whose record is a prompt of the conversation.
pub(super) fn is_own(path: &Path) -> bool {
    path.parent().is_some_and(|owner| owner.is_root())
}
