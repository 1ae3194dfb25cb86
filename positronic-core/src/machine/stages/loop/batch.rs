//! Scheduling of a batch's calls.
//!
//! Approvals are requested all at once, except under `Strict`, one at a time. An approved call runs at once. A call without
//! approval runs unless an undecided one precedes it (`Gated`), or at once (`Eager`), or in order (`Strict`);
//! a read-only call never waits for an approval. An exit tool is a barrier: it starts when every call before it has a
//! result, and no call after it ever starts. A call of a caller's tool does not run: it waits for the caller's result.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::approvals::{self, denial, denied_before};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::{BrainFrame, Call, CallPhase, Intent, LoopFrame};
use crate::machine::limits::Enclosing;
use crate::machine::stages::brain::{nests_too_deep, too_deep};
use crate::machine::stages::frame::Frame;
use crate::record::{
    Actor, BatchPolicy, CallFlags, EventKind, NewEvent, PrecedingCalls, ResumeCause, Timestamp, ToolId, ToolResult,
    WaitSpec,
};

/// Computes what the calls of a batch need. `caller_timeout` is how long a call of a caller's tool waits.
pub(super) fn next<'a>(
    frame: &'a LoopFrame,
    caller_timeout: Option<Duration>,
    now: Timestamp,
    enclosing: &mut Enclosing<'a>,
    out: &mut Next,
) {
    // A rejected exit call has its result while earlier calls continue, which do not affect it.
    let exit = frame.batch.iter().position(|call| call.ends_loop() && call.result().is_some());
    let (live, behind) = match exit {
        Some(exit) => frame.batch.split_at(exit),
        None => (frame.batch.as_slice(), [].as_slice()),
    };
    if let Some((exit, behind)) = behind.split_first() {
        after_exit(frame, exit, behind, out);
    }
    // Each nested brain is visited once, for its use of capacity and for its needs.
    let inner: Vec<_> = frame.batch.iter().filter_map(|call| visit_inner(call, now, enclosing)).collect();
    let mut room = Capacity::of(frame, &inner);
    let mut inner = inner.into_iter();
    let mut before = PrecedingCalls::default();
    let mut failed = None;
    for call in live {
        let walked = call.inner().and_then(|_| inner.next());
        if let Some(failed) = failed.filter(|_| call.flags.after_success && is_unbegun(call)) {
            out.effects.push(Effect::Append(vec![call.ended(skipped_after(failed))]));
            continue;
        }
        failed = failed.or_else(|| matches!(call.result(), Some(ToolResult::Error { .. })).then_some(call));
        if call.flags.caller && matches!(call.phase, CallPhase::Open(_)) {
            if before.lets_start(call.flags, call.gate.is_some(), frame.limits.policy) {
                let expires = caller_timeout.map(|timeout| now.after(timeout));
                out.effects.push(Effect::Append(vec![wait_for_caller(call, expires)]));
            }
        } else {
            one(frame, call, now, &before, &mut room, walked, out);
        }
        let undecided = matches!(call.phase, CallPhase::Gated | CallPhase::Pending { .. });
        before.pass(undecided, call.result().is_some(), call.ends_loop());
    }
}

/// Begins the wait of a call for its caller's result.
fn wait_for_caller(call: &Call, expires: Option<Timestamp>) -> NewEvent {
    let (waits, output) = (vec![WaitSpec { expires, ..WaitSpec::for_caller(&call.path) }], Value::Null);
    NewEvent::new(call.path.clone(), EventKind::LoopWait { waits, output, change: None })
}

/// Returns whether a call has neither begun nor ended.
fn is_unbegun(call: &Call) -> bool {
    matches!(call.phase, CallPhase::Gated | CallPhase::Open(Intent::Ready))
}

fn skipped_after(failed: &Call) -> ToolResult {
    ToolResult::Skipped { reason: format!("`{}` failed before it. Call it again when that is resolved", failed.tool) }
}

/// Computes what a call's nested brain needs.
fn visit_inner<'a>(call: &'a Call, now: Timestamp, enclosing: &mut Enclosing<'a>) -> Option<Next> {
    let CallPhase::Brain(inner) = &call.phase else { return None };
    let mut out = Next::default();
    if inner.end.is_none() {
        inner.effects(now, enclosing, &mut out);
    }
    Some(out)
}

/// Returns whether a brain only waits for input: then it does not count towards the concurrency limit. One that is
/// blocked by an outer limit counts.
fn is_suspended(frame: &BrainFrame, next: &Next) -> bool {
    frame.end.is_none() && next.effects.is_empty() && !next.blocked && !frame.in_flight(Intent::is_busy)
}

/// The remaining capacity for concurrent calls.
struct Capacity {
    free: u32,
    running: u32,
    alone: bool,
}

impl Capacity {
    /// `inner` is what the nested brains need, in order.
    fn of(frame: &LoopFrame, inner: &[Next]) -> Self {
        let mut room = Self { free: frame.limits.parallel.max(1), running: 0, alone: false };
        let mut inner = inner.iter();
        for call in frame.batch.iter().filter(|call| call.is_running()) {
            match &call.phase {
                CallPhase::Brain(brain) if inner.next().is_some_and(|next| is_suspended(brain, next)) => {
                    room.running += 1;
                }
                _ => room.take(call.flags),
            }
        }
        room
    }

    const fn take(&mut self, flags: CallFlags) {
        self.free = self.free.saturating_sub(1);
        self.running += 1;
        self.alone |= flags.sequential;
    }

    /// Takes a slot for a call if there is one. A waiting sequential call blocks later ones.
    const fn enter(&mut self, flags: CallFlags) -> bool {
        if self.free == 0 || self.alone {
            return false;
        }
        if flags.sequential && self.running > 0 {
            self.alone = true;
            return false;
        }
        self.take(flags);
        true
    }
}

fn one(
    frame: &LoopFrame,
    call: &Call,
    now: Timestamp,
    before: &PrecedingCalls,
    room: &mut Capacity,
    walked: Option<Next>,
    out: &mut Next,
) {
    match &call.phase {
        CallPhase::Done(_) => {}
        // An identical call was rejected after the batch was formed, before this one was asked about.
        CallPhase::Gated if frame.denials.contains(&denial(&call.tool, &call.arguments)) => {
            out.effects.push(Effect::Append(vec![call.ended(denied_before())]));
        }
        CallPhase::Gated => {
            if frame.limits.policy != BatchPolicy::Strict || !before.is_unfinished() {
                out.effects.push(Effect::Append(vec![approvals::request(call, now)]));
            }
        }
        CallPhase::Pending { expires, .. } => {
            if let Some(expires) = *expires {
                if expires <= now {
                    out.effects.push(Effect::Append(approvals::expired(call).into()));
                } else {
                    out.wake_at(expires);
                }
            }
        }
        CallPhase::Open(Intent::Doubtful) if !call.may_rerun() => {
            out.effects.push(Effect::Append(vec![call.interrupted()]));
        }
        CallPhase::Open(intent) => {
            if before.lets_start(call.flags, call.gate.is_some(), frame.limits.policy)
                && intent.may_start(now, out)
                && room.enter(call.flags)
            {
                if call.flags.brain && nests_too_deep(&call.path) {
                    out.effects.push(Effect::Append(vec![call.ended(ToolResult::error(too_deep(&call.path)))]));
                    return;
                }
                let path = call.path.clone();
                out.effects.push(if call.flags.brain {
                    Effect::StartBrain { path }
                } else {
                    Effect::Execute { path, attempt: intent.next_attempt(call.attempt) }
                });
            }
        }
        CallPhase::Brain(inner) => {
            if inner.end.is_some() {
                out.effects.push(Effect::FinishBrain { path: call.path.clone() });
            } else if let Some(next) = walked {
                out.effects.extend(next.effects);
                out.blocked |= next.blocked;
                if let Some(wake) = next.wake {
                    out.wake_at(wake);
                }
            }
        }
        CallPhase::Waiting { waits, .. } => {
            let first = waits
                .iter()
                .enumerate()
                .filter_map(|(index, wait)| Some((wait.expires?, index, wait)))
                .min_by_key(|(expires, index, _)| (*expires, *index));
            if let Some((expires, index, wait)) = first {
                if expires <= now {
                    let resume = EventKind::LoopResume {
                        received: None,
                        cause: ResumeCause::Expired,
                        wait: u32::try_from(index).unwrap_or(u32::MAX),
                        payload: wait.otherwise.clone().unwrap_or_default(),
                        signal: None,
                        actor: Actor::default(),
                    };
                    let mut new_events = vec![NewEvent::new(call.path.clone(), resume)];
                    if wait.otherwise.is_none() {
                        let what = if call.flags.caller {
                            "the caller has sent no result in time"
                        } else {
                            "the wait expired"
                        };
                        new_events.push(call.ended(ToolResult::error(what)));
                    }
                    out.effects.push(Effect::Append(new_events));
                } else {
                    out.wake_at(expires);
                }
            }
        }
        CallPhase::Resumed { .. } => out.effects.push(Effect::Resume { path: call.path.clone() }),
    }
}

/// Handles an exit call with a result: later calls are skipped, and if it succeeded the loop ends.
fn after_exit(frame: &LoopFrame, exit: &Call, behind: &[Arc<Call>], out: &mut Next) {
    let mut new_events = Vec::new();
    let reason = format!("it came after the exit tool `{}`", exit.tool);
    for call in behind {
        call.close(&reason, &mut new_events);
    }
    if exit.result().is_some_and(ToolResult::is_success)
        && let Ok(tool) = ToolId::new(&exit.tool)
    {
        new_events.push(NewEvent::new(frame.path.clone(), EventKind::LoopExit { call: exit.path.clone(), tool }));
    }
    if !new_events.is_empty() {
        out.effects.push(Effect::Append(new_events));
    }
}

/// Returns whether the batch is blocked because a nested brain would have to call its model: then an outer loop's limit
/// ends that loop. Calls that only wait for a person continue to wait.
pub(super) fn is_batch_blocked(frame: &LoopFrame) -> bool {
    let blocked = |call: &Arc<Call>| call.inner().is_some_and(Frame::is_blocked_by_limit);
    // A delayed request does not progress: it would be sent later.
    frame.batch.iter().any(blocked) && !frame.batch.iter().any(|call| call.in_flight(Intent::is_running))
}
