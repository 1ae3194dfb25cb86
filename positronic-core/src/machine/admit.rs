//! Admission of signals: conversion into events, or refusal.
//!
//! A signal is checked against the run's state before anything is appended, so a refused one changes nothing. Repeating a
//! signal id gets the same reply.

mod listener;
mod refusal;

use serde_json::Value;

use self::listener::{check_caller_tools, listener, plugin_loop};
pub use self::refusal::Refusal;
use self::refusal::{location, subject};
use crate::record::{
    Amounts, BudgetRequest, Decision, DenialCause, Event, EventKind, NewEvent, Path, PendingKind, ResumeCause, Segment,
    Signal, SignalKind, Speaker, Timestamp, ToolDecl, ToolResult, WaitSpec,
};

use super::child::child_ended;
use super::close;
use super::frames::{Call, CallPhase, LoopFrame};
use super::grants::PendingGrant;
use super::limits::asked_at;
use super::state::RunState;
use super::status::pending;

/// Checks a value (the second argument) against a JSON schema, and describes a mismatch. It is passed in, so that the
/// machine needs no schema library.
pub type SchemaCheck<'a> = &'a dyn Fn(&Value, &Value) -> Result<(), String>;

/// Converts a signal into the events that accept it.
///
/// # Errors
///
/// [`Refusal`] when the signal does not match the run's state.
pub fn admit(
    state: &RunState,
    signal: &Signal,
    now: Timestamp,
    check: SchemaCheck<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    if let Some(seq) = state.signals.get(&signal.id) {
        return Err(Refusal::Repeated { seq: *seq });
    }
    // Otherwise, another signal with that id would make the engine's own a repetition.
    let is_of_engine = matches!(signal.kind, SignalKind::ChildEnded { .. } | SignalKind::Cancel { .. });
    if signal.id.is_reserved() && !is_of_engine {
        return Err(Refusal::ReservedId { id: signal.id.as_str().to_owned() });
    }
    if state.root.is_none() || state.has_ended() {
        return Err(Refusal::Ended);
    }
    match &signal.kind {
        SignalKind::Approve { call, arguments } => approve(state, signal, call, arguments.as_ref(), now, check),
        SignalKind::Grant { to, more } => grant(state, signal, to, *more, now),
        SignalKind::Reject { call, reason } => match asked_at(state, call) {
            Some((_, asked)) => refuse(asked, signal, call, reason.as_ref(), now),
            None => reject(state, signal, call, reason.as_ref(), now),
        },
        // Only the engine says how a child run has ended.
        SignalKind::Webhook { name, identifier, .. } if name == WaitSpec::CHILD => {
            Err(Refusal::NothingWaits { name: name.clone(), identifier: identifier.clone() })
        }
        SignalKind::Webhook { name, identifier, payload } => {
            let mut refused = Refusal::NothingWaits { name: name.clone(), identifier: identifier.clone() };
            for (call, wait) in
                waiting(state).filter(|(_, (_, wait))| wait.webhook == *name && wait.identifier == *identifier)
            {
                match answer(signal, &call, wait, payload, now, check) {
                    // An invalid signal is refused permanently, whatever has expired meanwhile.
                    Err(refusal) if !matches!(refused, Refusal::Misfit { .. }) => refused = refusal,
                    Err(_) => {}
                    accepted => return accepted,
                }
            }
            Err(refused)
        }
        SignalKind::Reply { call, payload } => {
            let wait = waiting(state).find(|(path, wait)| path == call && wait.1.webhook == REPLY);
            let Some((call, wait)) = wait else { return Err(not_asked(state, call, "a reply")) };
            answer(signal, &call, wait, payload, now, check)
        }
        SignalKind::ChildEnded { child, end } => child_ended(state, signal, child, end, now, check),
        SignalKind::Message { text, files, .. } if text.trim().is_empty() && files.is_empty() => {
            Err(Refusal::EmptyMessage)
        }
        SignalKind::Message { to, text, message_id, files, caller_tools } => {
            let path = listener(state, to.as_ref())?;
            check_caller_tools(state, &path, caller_tools.as_deref().unwrap_or_default())?;
            let kind = EventKind::LoopMessage {
                text: text.clone(),
                files: files.clone(),
                message_id: message_id.clone(),
                from: Speaker::Person,
                caller_tools: caller_tools.clone(),
                signal: Some(signal.id.clone()),
                actor: signal.actor.clone(),
            };
            Ok(vec![NewEvent::new(path, kind)])
        }
        SignalKind::UpdatePlugin { to, plugin, update } => {
            let path = plugin_loop(state, to.as_ref(), plugin)?;
            let kind = EventKind::LoopPluginUpdate {
                plugin: plugin.clone(),
                update: sorted(update).into(),
                signal: signal.id.clone(),
                actor: signal.actor.clone(),
            };
            Ok(vec![NewEvent::new(path, kind)])
        }
        SignalKind::Pause if state.paused.is_some() => Err(Refusal::Paused),
        SignalKind::Pause => Ok(vec![NewEvent::new(
            Path::root(),
            EventKind::BrainPaused { signal: signal.id.clone(), actor: signal.actor.clone(), failure: None },
        )]),
        SignalKind::Resume if state.paused.is_none() => Err(Refusal::NotPaused),
        SignalKind::Resume => Ok(vec![NewEvent::new(
            Path::root(),
            EventKind::BrainResumed { signal: signal.id.clone(), actor: signal.actor.clone() },
        )]),
        SignalKind::Cancel { reason } => Ok(close::cancel(state, &signal.id, &signal.actor, reason.as_ref())),
    }
}

/// Finds the decision on a call, or the last one on more for a loop or a brain, in the log: the state drops the calls
/// of a completed batch.
pub fn earlier_decision<'a>(log: impl IntoIterator<Item = &'a Event>, call: &Path) -> Option<Refusal> {
    let (mut found, mut currency) = (None, None);
    for event in log {
        currency = currency.or_else(|| event.currency());
        if event.path != *call {
            continue;
        }
        let (mut how, reason, actor) = match &event.kind {
            EventKind::LoopApprovalDecided { decision: Decision::Approved, reason, actor, .. } => {
                ("it was approved".to_owned(), reason, actor)
            }
            EventKind::LoopApprovalDecided { decision: Decision::Rejected, reason, actor, .. } => {
                ("it was rejected".to_owned(), reason, actor)
            }
            EventKind::BudgetDecided { decision: Decision::Approved, more, reason, actor, .. } => {
                (format!("it was granted {} more", more.amounts(currency)), reason, actor)
            }
            EventKind::BudgetDecided { decision: Decision::Rejected, reason, actor, .. } => {
                ("it was refused more".to_owned(), reason, actor)
            }
            _ => continue,
        };
        how.push_str(&actor.clause());
        if let Some(reason) = reason {
            how.push_str(": ");
            how.push_str(reason);
        }
        found = Some(Refusal::Decided { call: call.clone(), how });
    }
    found
}

/// The webhook name of a wait for a reply to the call itself.
pub(crate) const REPLY: &str = WaitSpec::REPLY;

fn approve(
    state: &RunState,
    signal: &Signal,
    path: &Path,
    arguments: Option<&Value>,
    now: Timestamp,
    check: SchemaCheck<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    let (frame, call) = pending_call(state, path, now)?;
    if let Some(arguments) = arguments {
        if !call.gate.as_ref().is_some_and(|gate| gate.editable) {
            return Err(Refusal::NotEditable { call: path.clone() });
        }
        let fits = match declared(frame, call) {
            Some(tool) => check(&tool.parameters, arguments),
            None => Err(format!("the tool `{}` is not declared, so they cannot be checked", call.tool)),
        };
        fits.map_err(|reason| Refusal::Misfit {
            what: format!("the edited arguments of `{path}` are invalid"),
            reason,
        })?;
    }
    let kind = EventKind::LoopApprovalDecided {
        decision: Decision::Approved,
        arguments: arguments.filter(|arguments| **arguments != *call.arguments).map(sorted),
        reason: None,
        signal: signal.id.clone(),
        actor: signal.actor.clone(),
    };
    Ok(vec![NewEvent::new(path.clone(), kind)])
}

fn reject(
    state: &RunState,
    signal: &Signal,
    path: &Path,
    reason: Option<&String>,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Refusal> {
    pending_call(state, path, now)?;
    let decided = EventKind::LoopApprovalDecided {
        decision: Decision::Rejected,
        arguments: None,
        reason: reason.cloned(),
        signal: signal.id.clone(),
        actor: signal.actor.clone(),
    };
    let cause = Some(DenialCause::Rejected);
    let result = ToolResult::Denied { cause, reason: reason.cloned(), by: signal.actor.by.clone() };
    Ok(vec![
        NewEvent::new(path.clone(), decided),
        NewEvent::new(path.clone(), EventKind::LoopToolResult { result, duration: None, change: None }),
    ])
}

fn grant(
    state: &RunState,
    signal: &Signal,
    to: &Path,
    more: Amounts,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Refusal> {
    let Some((bound, asked)) = asked_at(state, to) else {
        return Err(Refusal::NotAsked { at: to.clone(), open: open(state) });
    };
    if is_void(asked, now) {
        return Err(Refusal::Expired { call: to.clone() });
    }
    if let Some(kind) = more.kinds().find(|kind| bound.limit(*kind).is_none()) {
        let how = format!("{} has no limit of {}, so granting more has no effect", subject(to), kind.noun());
        return Err(Refusal::TooLittle { how });
    }
    let BudgetRequest { kind, limit, used, .. } = asked.request;
    let (limit, used) = bound.limit(kind).unwrap_or((limit, used));
    if limit.saturating_add(more.of(kind)) <= used {
        let least = (used - limit).saturating_add(1);
        let [used, limit, least] = [used, limit, least].map(|amount| kind.amount(amount, state.currency.as_deref()));
        let how = format!("that is not enough: {used} used, {limit} allowed; grant at least {least} more");
        return Err(Refusal::TooLittle { how });
    }
    let (decision, reason) = (Decision::Approved, None);
    let (signal, actor) = (signal.id.clone(), signal.actor.clone());
    Ok(vec![NewEvent::new(to.clone(), EventKind::BudgetDecided { decision, more, reason, signal, actor })])
}

fn refuse(
    asked: &PendingGrant,
    signal: &Signal,
    path: &Path,
    reason: Option<&String>,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Refusal> {
    if is_void(asked, now) {
        return Err(Refusal::Expired { call: path.clone() });
    }
    let (decision, more, reason) = (Decision::Rejected, Amounts::default(), reason.cloned());
    let (signal, actor) = (signal.id.clone(), signal.actor.clone());
    Ok(vec![NewEvent::new(path.clone(), EventKind::BudgetDecided { decision, more, reason, signal, actor })])
}

fn is_void(asked: &PendingGrant, now: Timestamp) -> bool {
    asked.request.expires.is_some_and(|expires| expires <= now)
}

fn pending_call<'a>(state: &'a RunState, path: &Path, now: Timestamp) -> Result<(&'a LoopFrame, &'a Call), Refusal> {
    if asked_at(state, path).is_some() {
        let how = "asks for more, so say how much, or reject it".to_owned();
        return Err(Refusal::Unasked { call: path.clone(), how });
    }
    let found = state.loop_at(path).zip(state.call(path));
    let Some((frame, call)) = found else { return Err(no_such_call(state, path)) };
    match &call.phase {
        CallPhase::Pending { expires: Some(expires), .. } if *expires <= now => {
            Err(Refusal::Expired { call: path.clone() })
        }
        CallPhase::Pending { .. } => Ok((frame, call)),
        CallPhase::Done(result) => {
            let how = match result {
                ToolResult::Success { .. } => "it ran and succeeded",
                ToolResult::Error { .. } => "it ran and failed",
                ToolResult::Denied { .. } => "it was denied",
                ToolResult::Skipped { .. } => "it was skipped",
                ToolResult::Interrupted { .. } => "it was interrupted",
            };
            Err(Refusal::Decided { call: path.clone(), how: how.to_owned() })
        }
        CallPhase::Open(_) | CallPhase::Brain(_) | CallPhase::Waiting { .. } | CallPhase::Resumed { .. }
            if call.gate.is_some() =>
        {
            Err(Refusal::Decided { call: path.clone(), how: "it was approved and runs".to_owned() })
        }
        CallPhase::Open(_) | CallPhase::Brain(_) | CallPhase::Waiting { .. } | CallPhase::Resumed { .. } => {
            Err(not_asked(state, path, "a decision"))
        }
        CallPhase::Gated => Err(no_such_call(state, path)),
    }
}

fn declared<'a>(frame: &'a LoopFrame, call: &Call) -> Option<&'a ToolDecl> {
    frame.prepared.tools.tools().iter().find(|tool| tool.id.as_str() == call.tool)
}

/// Describes what a call waits for, if the signal is another one.
fn not_asked(state: &RunState, path: &Path, sent: &str) -> Refusal {
    let how = match pending(state).into_iter().find(|pending| pending.call == *path).map(|pending| pending.kind) {
        Some(PendingKind::Approval { .. }) => format!("waits for a decision, not for {sent}"),
        Some(PendingKind::Budget(BudgetRequest { kind, .. })) => {
            format!("asks for more {}, not for {sent}", kind.noun())
        }
        Some(PendingKind::Answer { waits }) => {
            let what = waits.iter().map(|wait| match wait.webhook.as_str() {
                REPLY => "a reply".to_owned(),
                name => format!("the webhook `{name}` with identifier `{}`", wait.identifier),
            });
            format!("waits for {}, not for {sent}", what.collect::<Vec<_>>().join(" or "))
        }
        None if state.call(path).is_some_and(|call| call.result().is_none()) => {
            format!("does not wait for {sent}")
        }
        None => return no_such_call(state, path),
    };
    Refusal::Unasked { call: path.clone(), how }
}

fn no_such_call(state: &RunState, call: &Path) -> Refusal {
    Refusal::NoSuchCall { call: call.clone(), open: open(state) }
}

/// Lists what is pending, as a clause.
fn open(state: &RunState) -> String {
    let open: Vec<_> = pending(state).iter().map(|pending| location(&pending.call)).collect();
    if open.is_empty() { "nothing is pending".to_owned() } else { format!("pending: {}", open.join(", ")) }
}

pub(super) type OpenWait = (usize, WaitSpec);

pub(super) fn waiting(state: &RunState) -> impl Iterator<Item = (Path, OpenWait)> {
    pending(state).into_iter().flat_map(|pending| {
        let (waits, call) = (pending.kind.waits().to_vec(), pending.call);
        waits.into_iter().enumerate().map(move |wait| (call.clone(), wait))
    })
}

pub(super) fn answer(
    signal: &Signal,
    call: &Path,
    (index, wait): OpenWait,
    payload: &Value,
    now: Timestamp,
    check: SchemaCheck<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    if wait.expires.is_some_and(|expires| expires <= now) {
        return Err(Refusal::Expired { call: call.clone() });
    }
    check(&wait.schema, payload)
        .map_err(|reason| Refusal::Misfit { what: format!("the payload for `{call}` is invalid"), reason })?;
    let (cause, received) = (ResumeCause::Answered, None);
    let (wait, payload) = (u32::try_from(index).unwrap_or(u32::MAX), sorted(payload));
    let (signal, actor) = (Some(signal.id.clone()), signal.actor.clone());
    let kind = match call.last() {
        Some(Segment::Stage(_)) => EventKind::StageResume { cause, wait, payload, received, signal, actor },
        _ => EventKind::LoopResume { cause, wait, payload, received, signal, actor },
    };
    Ok(vec![NewEvent::new(call.clone(), kind)])
}

/// Sorts the keys of external JSON, whatever features other crates enable in `serde_json`, so that the model and readers of
/// the log see the same text.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}
