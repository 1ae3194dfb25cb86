//! The next effects of a run: a pure function of the state and the time.

use super::crash_limit::{isolate, park};
use super::effect::{Effect, Next};
use super::frames::Intent;
use super::limits::Enclosing;
use super::state::RunState;
use crate::record::Timestamp;

/// Computes the effects for this state and time. Without effects and without work in flight, the run is
/// suspended or over.
#[must_use]
pub fn next(state: &RunState, now: Timestamp) -> Next {
    let out = effects(state, now);
    match park(state, &out) {
        Some(parked) => Next { effects: vec![Effect::Append(vec![parked])], ..Next::default() },
        None => out,
    }
}

/// Returns whether an effect is due, without a visit of the other brains of the groups around it. Whether these leave room was decided when the effect
/// became due.
pub(crate) fn is_due(state: &RunState, effect: &Effect, now: Timestamp) -> bool {
    match effect.path().filter(|_| state.crashed.is_empty()) {
        Some(path) => effects_around(state, now, Enclosing::toward(path)).effects.contains(effect),
        None => next(state, now).effects.contains(effect),
    }
}

/// Computes the effects without a look at crashes.
pub(super) fn effects(state: &RunState, now: Timestamp) -> Next {
    effects_around(state, now, Enclosing::default())
}

fn effects_around<'a>(state: &'a RunState, now: Timestamp, mut enclosing: Enclosing<'a>) -> Next {
    let mut out = Next::default();
    if let Some(root) = &state.root
        && state.paused.is_none()
        && root.end.is_none()
    {
        root.effects(now, &mut enclosing, &mut out);
        isolate(state, &mut out);
    }
    out
}

impl Intent {
    /// Returns whether an effect can start now, and records a later start time.
    pub(super) fn may_start(self, now: Timestamp, out: &mut Next) -> bool {
        match self {
            Self::Ready | Self::Doubtful => true,
            Self::Running => false,
            Self::Backoff(due) if due <= now => true,
            Self::Backoff(due) => {
                out.wake_at(due);
                false
            }
        }
    }
}
