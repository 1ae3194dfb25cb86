//! Admission of signals: conversion into events, or refusal.
//!
//! A signal is checked against the run's state before anything is appended, so a refused one changes nothing. Repeating a
//! signal id gets the same reply.

mod approval;
mod earlier_decision;
mod external_json;
mod grant;
mod listener;
mod refusal;
mod wait_answer;

use self::approval::{approve, reject};
pub use self::earlier_decision::earlier_decision;
pub(crate) use self::earlier_decision::with_earlier_answer;
pub use self::external_json::SchemaCheck;
use self::external_json::sorted;
use self::grant::{grant, refuse};
use self::listener::{check_caller_tools, listener, plugin_loop};
pub use self::refusal::Refusal;
use self::refusal::not_asked;
pub(crate) use self::refusal::nothing_waits;
pub(crate) use self::wait_answer::REPLY;
pub(super) use self::wait_answer::{answer, waiting};
use super::child_end::child_ended;
use super::close;
use super::limits::asked_at;
use super::state::RunState;
use crate::record::{EventKind, NewEvent, Path, Signal, SignalKind, Speaker, Timestamp, WaitSpec};

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
            Err(nothing_waits(state, name, identifier))
        }
        SignalKind::Webhook { name, identifier, payload } => {
            let mut refused = nothing_waits(state, name, identifier);
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
