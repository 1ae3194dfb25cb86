//! Limits of model calls: which ones apply, whether one is reached, and the consequences.
//!
//! ```text
//! reached ─▶ without `ask_for_more`: LOOP_LIMIT, LOOP_MAX_ITERATIONS
//!     └────▶ BUDGET_REQUESTED ─▶ BUDGET_DECIDED: granted ─▶ the limit is raised, and the loop continues
//!                          └───▶ BUDGET_DECIDED: rejected, BUDGET_EXPIRED ─▶ as without `ask_for_more`
//! ```
//!
//! A limit belongs to a loop, or to a brain as its budget, and applies to everything below it. A loop ends by its own limits
//! and by those of the brains around it up to the next loop, which would end first. Frames further inside
//! wait until the owner of the limit has ended, or has more.
//!
//! The brain of a conversation's prompt has the conversation's budget in addition to its own. If both are reached, one
//! without `ask_for_more` ends the loop: more of the other would not help.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::record::{
    AskForMore, Budget, BudgetRequest, EventKind, LimitKind, LimitReached, NewEvent, OnLimit, Path, Timestamp,
};

use super::effect::{Effect, Next};
use super::frames::{BrainFrame, LoopFrame, LoopPhase, OpenFrame};
use super::grants::{Grants, PendingGrant, SharedLimits};
use super::state::RunState;

/// The next action. An iteration that has begun may call its model, whatever the limit of iterations, except for the
/// first one of a loop: it begins even if a brain around it has used up its iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitCheck {
    Iteration,
    FirstRequest,
    Request,
}

/// A frame whose limits apply to everything below it, or the conversation in the brain of its prompt.
#[derive(Debug, Clone, Copy)]
pub(super) enum LimitedFrame<'a> {
    Loop(&'a LoopFrame),
    Brain(&'a BrainFrame, &'a Budget),
    Shared(&'a BrainFrame, &'a SharedLimits),
}

impl<'a> LimitedFrame<'a> {
    /// Returns a brain's budgets, from the outside in.
    pub(super) fn all_of(brain: &'a BrainFrame) -> impl Iterator<Item = Self> {
        let shared = brain.shared.as_deref().map(|shared| Self::Shared(brain, shared));
        let own = brain.budget.as_deref().map(|budget| Self::Brain(brain, budget));
        shared.into_iter().chain(own)
    }

    /// Returns the budgets of a brain, or the limits of a loop.
    pub(super) fn of(open: OpenFrame<'a>) -> impl Iterator<Item = Self> {
        let (brain, own) = match open {
            OpenFrame::Brain(brain) => (Some(brain), None),
            OpenFrame::Loop(frame) => (None, Some(Self::Loop(frame))),
            OpenFrame::Step(..) | OpenFrame::Call(_) | OpenFrame::Wait(..) | OpenFrame::Group(_) => (None, None),
        };
        brain.into_iter().flat_map(Self::all_of).chain(own)
    }

    pub(super) const fn path(self) -> &'a Path {
        match self {
            Self::Loop(frame) => &frame.path,
            Self::Brain(frame, _) | Self::Shared(frame, _) => &frame.path,
        }
    }

    pub(super) const fn grants(self) -> &'a Grants {
        match self {
            Self::Loop(frame) => &frame.grants,
            Self::Brain(frame, _) => &frame.grants,
            Self::Shared(_, shared) => &shared.grants,
        }
    }

    pub(super) const fn is_shared(self) -> bool {
        matches!(self, Self::Shared(..))
    }

    /// Names the owner of the limit, for a message.
    pub(super) fn name(self) -> String {
        match self {
            Self::Loop(frame) => format!("the loop `{}`", frame.path),
            Self::Brain(frame, _) if frame.path.is_root() => format!("the brain `{}`", frame.title),
            Self::Brain(frame, _) => format!("the brain `{}`", frame.path),
            Self::Shared(..) => "the conversation".to_owned(),
        }
    }

    const fn budget(self) -> &'a Budget {
        match self {
            Self::Loop(frame) => &frame.limits.budget,
            Self::Brain(_, budget) => budget,
            Self::Shared(_, shared) => &shared.budget.budget,
        }
    }

    /// Returns the limit of one kind including grants, and the used amount.
    pub(super) fn limit(self, kind: LimitKind) -> Option<(u64, u64)> {
        let limit = match self {
            Self::Loop(frame) if kind == LimitKind::Failures => frame.limits.max_failures.map(u64::from),
            Self::Loop(_) | Self::Brain(..) => self.budget().limit(kind),
            Self::Shared(_, shared) => shared.budget.limit(kind),
        };
        let limit = limit?.saturating_add(self.grants().more.of(kind));
        let used = match self {
            Self::Loop(frame) => frame.used(kind),
            Self::Brain(frame, _) => frame.used(kind),
            Self::Shared(frame, shared) => frame.used(kind).saturating_add(shared.budget.used.of(kind)),
        };
        Some((limit, used))
    }

    pub(super) fn unpriced(self) -> Option<&'a Arc<str>> {
        match self {
            Self::Loop(frame) => frame.spent.unpriced.as_ref(),
            Self::Brain(frame, _) | Self::Shared(frame, _) => frame.spent.unpriced.as_ref(),
        }
    }

    /// Returns the first reached limit.
    pub(super) fn reached(self, before: LimitCheck) -> Option<LimitReached> {
        let counts_iterations = match self {
            Self::Loop(frame) => matches!(frame.phase, LoopPhase::Prepare),
            Self::Brain(..) | Self::Shared(..) => true,
        };
        let kinds = [LimitKind::Tokens, LimitKind::Money, LimitKind::Time, LimitKind::Iterations, LimitKind::Failures];
        kinds.into_iter().find_map(|kind| {
            // A brain counts the iteration that has begun.
            let counts_itself =
                kind == LimitKind::Iterations && before == LimitCheck::FirstRequest && !matches!(self, Self::Loop(_));
            if matches!(kind, LimitKind::Iterations | LimitKind::Failures)
                && !(counts_iterations && before == LimitCheck::Iteration || counts_itself)
            {
                return None;
            }
            let (limit, used) = self.limit(kind)?;
            let used = used.saturating_sub(u64::from(counts_itself));
            let unpriced = self.unpriced().filter(|_| kind == LimitKind::Money).cloned();
            let of = || match self {
                Self::Loop(_) => None,
                Self::Brain(frame, _) | Self::Shared(frame, _) => Some(frame.path.clone()),
            };
            (used >= limit || unpriced.is_some()).then(|| LimitReached {
                kind,
                limit,
                used,
                of: of(),
                shared: self.is_shared(),
                unpriced,
            })
        })
    }

    /// Returns whether a person is asked for more. More does not help against an unknown cost or against
    /// failing calls.
    fn asks(self, reached: &LimitReached) -> Option<AskForMore> {
        let helps = reached.unpriced.is_none() && reached.kind != LimitKind::Failures;
        self.budget().ask.filter(|_| helps && !self.grants().refused)
    }

    /// Returns the consequence for the brain whose loop it ends.
    pub(super) fn on_limit(self) -> OnLimit {
        self.budget().on_limit.unwrap_or(match self {
            Self::Loop(_) => OnLimit::Exit,
            Self::Brain(..) | Self::Shared(..) => OnLimit::Error,
        })
    }
}

/// What is around a frame whose effects are computed.
#[derive(Default)]
pub(super) struct Enclosing<'a> {
    /// The loops and budgets, from the outside in.
    bounds: SmallVec<[LimitedFrame<'a>; 4]>,
    /// The path of the only effect that is looked for.
    only: Option<&'a Path>,
}

impl<'a> Enclosing<'a> {
    /// Looks for the effect at a path only.
    pub(super) fn toward(path: &'a Path) -> Self {
        Self { only: Some(path), ..Self::default() }
    }

    /// Returns whether the effects of one brain of a group are looked for.
    pub(super) fn leads_to(&self, brain: &Path) -> bool {
        self.only.is_none_or(|only| only.is_within(brain))
    }

    pub(super) fn within<T>(
        &mut self,
        bounds: impl IntoIterator<Item = LimitedFrame<'a>>,
        f: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let enclosing = self.bounds.len();
        self.bounds.extend(bounds);
        let result = f(self);
        self.bounds.truncate(enclosing);
        result
    }

    /// Returns whether something around waits for more or is about to end, together with an outer loop.
    pub(super) fn exhausted(&self, before: LimitCheck) -> bool {
        let last = self.bounds.iter().rposition(|bound| matches!(bound, LimitedFrame::Loop(_)));
        let outer = last.and_then(|last| self.bounds.get(..=last)).unwrap_or_default();
        outer.iter().any(|bound| bound.reached(before).is_some())
    }

    fn binding_limit(&self, before: LimitCheck) -> Option<(LimitedFrame<'a>, LimitReached)> {
        binding_limit(&self.bounds, before)
    }

    /// Requests more if a budget with `ask_for_more` is used up, and returns whether new work must wait.
    pub(super) fn asks_for_more(&self, before: LimitCheck, now: Timestamp, out: &mut Next) -> bool {
        let Some((bound, reached)) = self.binding_limit(before) else { return false };
        ask_for_more(bound, &reached, now, out)
    }

    /// Ends a loop that has reached its own limit or one of its brain, or requests more first.
    /// Returns whether it did either.
    pub(super) fn at_limit(&self, frame: &'a LoopFrame, before: LimitCheck, now: Timestamp, out: &mut Next) -> bool {
        let own = LimitedFrame::Loop(frame);
        // The summary iteration may exceed the loop's own limits, but never a brain's.
        let own = own.reached(before).filter(|_| frame.wrap_up.is_none()).map(|reached| (own, reached));
        let Some((bound, reached)) = own.or_else(|| self.binding_limit(before)) else { return false };
        if !ask_for_more(bound, &reached, now, out) {
            end(frame, bound, reached, out);
        }
        true
    }
}

/// Returns the used-up budget of the innermost brain around, up to the next loop.
///
/// Of its own and the conversation's budget, one without `ask_for_more` comes first; then one with an open request.
fn binding_limit<'a>(enclosing: &[LimitedFrame<'a>], before: LimitCheck) -> Option<(LimitedFrame<'a>, LimitReached)> {
    let brains = enclosing.iter().rev().take_while(|bound| !matches!(bound, LimitedFrame::Loop(_)));
    let mut reached = brains.filter_map(|bound| Some((*bound, bound.reached(before)?)));
    let first = reached.next()?;
    let Some(other) = reached.next().filter(|(other, _)| other.path() == first.0.path()) else { return Some(first) };
    let rank = |(bound, reached): &(LimitedFrame<'_>, LimitReached)| match bound.asks(reached) {
        None => 0,
        Some(_) if bound.grants().asked.is_some() => 1,
        Some(_) => 2,
    };
    Some(if rank(&other) < rank(&first) { other } else { first })
}

fn ask_for_more(bound: LimitedFrame<'_>, reached: &LimitReached, now: Timestamp, out: &mut Next) -> bool {
    let Some(ask) = bound.asks(reached) else { return false };
    let event = match bound.grants().asked.map(|asked| asked.request.expires) {
        None => {
            let LimitReached { kind, limit, used, shared, .. } = *reached;
            let expires = ask.valid_for.map(|valid| now.after(valid));
            EventKind::BudgetRequested(BudgetRequest { kind, limit, used, shared, expires })
        }
        Some(Some(expires)) if expires <= now => EventKind::BudgetExpired {},
        Some(expires) => {
            expires.into_iter().for_each(|expires| out.wake_at(expires));
            return true;
        }
    };
    out.effects.push(Effect::Append(vec![NewEvent::new(bound.path().clone(), event)]));
    true
}

fn end(frame: &LoopFrame, bound: LimitedFrame<'_>, reached: LimitReached, out: &mut Next) {
    let mut new_events = Vec::new();
    let why = match &reached.unpriced {
        Some(model) => format!("{} has a limit of money, and the price of `{model}` is unknown", bound.name()),
        None => format!("{} reached its limit of {}", bound.name(), reached.kind.noun()),
    };
    frame.close_calls(&why, &mut new_events);
    let event = match bound {
        LimitedFrame::Loop(_) if reached.kind == LimitKind::Iterations => {
            EventKind::LoopMaxIterations { limit: u32::try_from(reached.limit).unwrap_or(u32::MAX) }
        }
        _ => EventKind::LoopLimit(reached),
    };
    new_events.push(NewEvent::new(frame.path.clone(), event));
    out.effects.push(Effect::Append(new_events));
}

/// The decision on a question of a step or a plugin to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LimitVerdict {
    /// It is sent.
    Allowed,
    /// The step or iteration is stopped, and restarts when there is more.
    Blocked,
    /// It is refused, with this reason.
    Refused(String),
}

/// Decides whether a step or an iteration in preparation may call a model now.
pub(super) fn may_ask(state: &RunState, asker: &Path) -> LimitVerdict {
    let mut bounds = bounds(state, asker);
    // The summary iteration is allowed beyond the loop's own limits, with everything that it needs.
    bounds.retain(|bound| !matches!(bound, LimitedFrame::Loop(frame) if frame.wrap_up.is_some()));
    let inside = bounds.iter().rposition(|bound| matches!(bound, LimitedFrame::Loop(_))).map_or(0, |last| last + 1);
    let (outer, brains) = bounds.split_at_checked(inside).unwrap_or_default();
    let binding_limit = binding_limit(brains, LimitCheck::Request);
    let outer: Vec<_> = outer.iter().filter_map(|bound| Some((*bound, bound.reached(LimitCheck::Request)?))).collect();
    let asks = |(bound, reached): &(LimitedFrame<'_>, LimitReached)| bound.asks(reached).is_some();
    // An outer loop with a reached limit ends, or continues with more: both are decided elsewhere.
    let waits = outer.iter().any(|enclosing| matches!(enclosing.0, LimitedFrame::Loop(_)) || asks(enclosing));
    if waits || binding_limit.as_ref().is_some_and(asks) {
        return LimitVerdict::Blocked;
    }
    let Some((bound, first)) = binding_limit.as_ref().or(outer.last()) else { return LimitVerdict::Allowed };
    let what = first.kind.noun();
    LimitVerdict::Refused(format!("the model is not called: {} has used up its budget of {what}", bound.name()))
}

/// Returns whether a limit of money applies to a loop, apart from its own.
pub(crate) fn limits_money(state: &RunState, path: &Path) -> bool {
    let mut is_limited = false;
    state.walk(path.as_str(), |open| {
        is_limited |= LimitedFrame::of(open).any(|bound| bound.limit(LimitKind::Money).is_some());
    });
    is_limited
}

/// Returns whether a limit of money applies to anything open in a run.
pub(crate) fn has_limit_of_money(state: &RunState) -> bool {
    let is_limited = |bound: LimitedFrame<'_>| bound.limit(LimitKind::Money).is_some();
    state.any_open(|open| LimitedFrame::of(open).any(is_limited))
}

/// Collects the frames whose limits apply to a stage or an iteration, from the outside in.
fn bounds<'a>(state: &'a RunState, at: &Path) -> Vec<LimitedFrame<'a>> {
    let mut found = Vec::new();
    state.walk(at.as_str(), |open| found.extend(LimitedFrame::of(open)));
    found
}

/// Finds the limits of the open loop or brain with this path: its own, or the conversation's.
pub(super) fn bound_at<'a>(state: &'a RunState, path: &Path, shared: bool) -> Option<LimitedFrame<'a>> {
    bounds_at(state, path).find(|bound| bound.is_shared() == shared)
}

/// Finds the frame with an open request for more at this path.
pub(super) fn asked_at<'a>(state: &'a RunState, path: &Path) -> Option<(LimitedFrame<'a>, &'a PendingGrant)> {
    bounds_at(state, path).find_map(|bound| Some((bound, bound.grants().asked.as_ref()?)))
}

fn bounds_at<'a>(state: &'a RunState, path: &Path) -> impl Iterator<Item = LimitedFrame<'a>> {
    let loop_at = state.loop_at(path).filter(|frame| frame.path == *path);
    let brain = state.brain(path).filter(|brain| loop_at.is_none() && brain.end.is_none());
    loop_at.map(LimitedFrame::Loop).into_iter().chain(brain.into_iter().flat_map(LimitedFrame::all_of))
}
