//! The fold of usage and of decisions on limits.

use std::sync::Arc;

use super::frame_lookup::owner_of;
use super::frames::{LoopFrame, Visit};
use super::grants::{Grants, PendingGrant};
use super::limits::{LimitCheck, LimitedFrame, asked_at, bound_at};
use super::stages::Reason;
use super::state::RunState;
use crate::record::{Decision, Event, EventKind, Failure, LimitKind, LoopOutcome, OnLimit, Path, ResponseMetadata};

const NO_LIMITS: &str = "no loop or brain with limits is open at this path";

/// Folds a request for more, and its outcome.
pub(super) fn apply_budget(state: &mut RunState, event: &Event) -> Result<(), Reason> {
    let path = &event.path;
    let shared = match (&event.kind, asked_at(state, path)) {
        (EventKind::BudgetRequested(_), Some(_)) => return Err("a person is asked already".to_owned()),
        (EventKind::BudgetRequested(request), None) => {
            let bound = bound_at(state, path, request.shared).ok_or(NO_LIMITS)?;
            // Releases count active time differently.
            let is_timed = request.kind == LimitKind::Time && bound.limit(LimitKind::Time).is_some();
            if !is_timed && bound.reached(LimitCheck::Iteration).is_none() {
                return Err(format!("its limit of {} is not reached", request.kind.noun()));
            }
            request.shared
        }
        (_, None) => return Err("no request for more is open".to_owned()),
        (_, Some((bound, _))) => bound.is_shared(),
    };
    let grants = allowance_mut(state, path, shared).ok_or(NO_LIMITS)?;
    match &event.kind {
        EventKind::BudgetRequested(request) => {
            grants.asked = Some(PendingGrant { since: event.seq, request: *request });
        }
        EventKind::BudgetDecided { decision, more, signal, .. } => {
            grants.asked = None;
            match decision {
                Decision::Approved => grants.more += *more,
                Decision::Rejected => grants.refused = true,
            }
            state.accept(Some(signal), event);
        }
        _ => (grants.asked, grants.refused) = (None, true),
    }
    Ok(())
}

fn allowance_mut<'a>(state: &'a mut RunState, path: &Path, shared: bool) -> Option<&'a mut Grants> {
    if state.loop_at(path).is_none_or(|frame| frame.path != *path) {
        let brain = state.brain_mut(path.as_str(), |_| ())?;
        return match shared {
            true => brain.shared.as_mut().map(|shared| &mut Arc::make_mut(shared).grants),
            false => Some(&mut brain.grants),
        };
    }
    Some(&mut state.brain_mut(owner_of(path)?, |_| ())?.stage.as_loop_mut()?.grants)
}

/// Adds an answer's usage and cost to the loop and all frames around it.
pub(super) fn add_usage(state: &mut RunState, path: &Path, metadata: &ResponseMetadata) {
    let Some(owner) = owner_of(path) else { return };
    // An answer without a provider costs nothing, in no currency.
    let charge = metadata.cost.as_ref().filter(|_| !metadata.is_free()).filter(|charge| {
        let currency = state.currency.get_or_insert_with(|| charge.currency.as_str().into());
        **currency == *charge.currency
    });
    let is_unpriced = charge.is_none() && !metadata.is_free();
    let spend = |spent: &mut super::grants::Spending| {
        if let Some(charge) = charge {
            spent.known += charge.amount;
        } else if is_unpriced {
            // The first one stays.
            spent.unpriced.get_or_insert_with(|| {
                let model = metadata.answered_by.as_ref().unwrap_or(&metadata.model);
                format!("{}/{model}", metadata.provider).into()
            });
        }
    };
    let usage = metadata.usage;
    let brain = state.brain_mut(owner, |visit| match visit {
        Visit::Brain(brain) => {
            brain.usage += usage;
            spend(&mut brain.spent);
        }
        Visit::Loop(frame) => {
            frame.usage += usage;
            spend(&mut frame.spent);
        }
    });
    if let Some(frame) = brain.and_then(|brain| brain.stage.as_loop_mut()) {
        frame.usage += usage;
        spend(&mut frame.spent);
    }
}

/// Counts an iteration for all brains around it.
pub(super) fn add_iteration(state: &mut RunState, path: &Path) {
    let Some(owner) = owner_of(path) else { return };
    state.brain_mut(owner, |visit| {
        if let Visit::Brain(brain) = visit {
            brain.iterations = brain.iterations.saturating_add(1);
        }
    });
}

/// Adds active time to a loop or a brain that is still open.
pub(super) fn add_active(state: &mut RunState, path: &Path, passed: u64) {
    if state.loop_at(path).is_some_and(|frame| frame.path == *path) {
        let brain = owner_of(path).and_then(|owner| state.brain_mut(owner, |_| ()));
        if let Some(frame) = brain.and_then(|brain| brain.stage.as_loop_mut()) {
            frame.active = frame.active.saturating_add(passed);
        }
    } else if let Some(brain) = state.brain_mut(path.as_str(), |_| ()) {
        brain.active = brain.active.saturating_add(passed);
    }
}

/// Returns the failure of a loop's brain after this outcome, if it fails.
pub(super) fn limit_failure(state: &RunState, frame: &LoopFrame, outcome: &LoopOutcome) -> Option<Failure> {
    let kind = match outcome {
        LoopOutcome::MaxIterations => LimitKind::Iterations,
        LoopOutcome::Limit { limit } => *limit,
        LoopOutcome::Failed { code, message, retryable } => {
            return Some(Failure { code: *code, message: message.clone(), retryable: *retryable });
        }
        LoopOutcome::Stopped { .. } if frame.limits.on_useless_answer == OnLimit::Exit => return None,
        LoopOutcome::Stopped { message, .. } => {
            let code = crate::record::EndReason::Answer;
            return Some(Failure { code, message: message.clone(), retryable: false });
        }
        LoopOutcome::Answered | LoopOutcome::Exited { .. } | LoopOutcome::Cancelled => return None,
    };
    let budget = frame.ended_by.as_ref().and_then(|path| bound_at(state, path, frame.ended_by_shared));
    let bound = budget.unwrap_or(LimitedFrame::Loop(frame));
    if bound.on_limit() == OnLimit::Exit {
        return None;
    }
    let (path, limit) = (&frame.path, bound.limit(kind).map_or(0, |(limit, _)| limit));
    let message = match (bound.unpriced(), bound) {
        (Some(model), _) if kind == LimitKind::Money => {
            // It may be known in another currency.
            let currency = state.currency.as_ref().map_or_else(String::new, |currency| format!(" in {currency}"));
            format!("the loop `{path}` has a limit of money, and the price of `{model}`{currency} is unknown")
        }
        (_, LimitedFrame::Brain(..) | LimitedFrame::Shared(..)) => {
            let (what, limit) = (kind.noun(), kind.amount(limit, state.currency.as_deref()));
            let whose = match bound {
                LimitedFrame::Brain(brain, _) => format!("the brain `{}`", brain.title),
                LimitedFrame::Loop(_) | LimitedFrame::Shared(..) => bound.name(),
            };
            format!("{whose} used up its budget of {what} in the loop `{path}`: {limit}")
        }
        (_, LimitedFrame::Loop(_)) => {
            let what = match kind {
                LimitKind::Iterations => format!("its {limit} iterations"),
                _ => format!("its limit of {}", kind.noun()),
            };
            format!("the loop `{path}` used up {what} without coming to an end")
        }
    };
    Some(Failure { code: crate::record::EndReason::Limit, message, retryable: false })
}
