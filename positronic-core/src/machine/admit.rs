//! Signals: what the outside says, turned into events or refused.
//!
//! A signal is checked against the run's state before anything is appended, so a refused one changes nothing. The
//! same signal id twice is the same answer.

use serde_json::Value;

use crate::record::{
    Amounts, Decision, Event, EventKind, NewEvent, Path, PendingKind, ResumeCause, Segment, Seq, Signal, SignalKind,
    Speaker, Timestamp, ToolDecl, ToolResult,
};

use super::call::{Call, CallPhase};
use super::close;
use super::limits::{PendingGrant, asked_at};
use super::loop_frame::{LoopFrame, LoopPhase};
use super::state::{RunState, Stage};
use super::status::pending;

/// Checks a value against a JSON schema. It is passed in, so that the machine stays free of libraries.
pub trait Schemas {
    /// Returns what does not fit, in a sentence.
    ///
    /// # Errors
    ///
    /// A sentence, when the value does not fit the schema.
    fn check(&self, schema: &Value, value: &Value) -> Result<(), String>;
}

/// Says why a signal was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The signal was accepted before; that was its answer.
    #[error("this signal was accepted before, with event {seq}")]
    Repeated {
        /// The event that says so.
        seq: Seq,
    },
    /// The run has ended.
    #[error("the run has ended, so it takes no more signals")]
    Ended,
    /// There is no such call in the open batch.
    #[error("{}; {open}", nothing_at(call))]
    NoSuchCall {
        /// The call.
        call: Path,
        /// What is pending instead, as a clause.
        open: String,
    },
    /// The call was decided already.
    #[error("{} was decided already: {how}", asker(call))]
    Decided {
        /// The call.
        call: Path,
        /// What was decided, or what became of the call.
        how: String,
    },
    /// Nobody is asked for more there.
    #[error("{} does not ask for more; {open}", asker(at))]
    NotAsked {
        /// The loop or the brain.
        at: Path,
        /// What is pending instead, as a clause.
        open: String,
    },
    /// What is granted does not help.
    #[error("{how}")]
    TooLittle {
        /// What was used, and how much it takes, in a sentence.
        how: String,
    },
    /// The call is open, and this is not what it waits for.
    #[error("{} {how}", asker(call))]
    Unasked {
        /// The call.
        call: Path,
        /// What it does instead, as the rest of the sentence.
        how: String,
    },
    /// The question is void.
    #[error("the question about {} expired before the answer came", asker(call))]
    Expired {
        /// The call.
        call: Path,
    },
    /// The author does not let the arguments be edited.
    #[error("the arguments of `{call}` may not be edited; approve or reject it as it is")]
    NotEditable {
        /// The call.
        call: Path,
    },
    /// The edited arguments or the payload do not fit their schema.
    #[error("{what}: {reason}")]
    Misfit {
        /// What was sent, and that it does not fit.
        what: String,
        /// What does not fit.
        reason: String,
    },
    /// Nothing waits for this webhook.
    #[error("nothing waits for the webhook `{name}` with identifier `{identifier}`")]
    NothingWaits {
        /// The webhook.
        name: String,
        /// Its identifier.
        identifier: String,
    },
    /// There is no open loop that could take a message, or there are several.
    #[error("{0}")]
    NoListener(String),
    /// The message says nothing.
    #[error("the message is empty; say something")]
    EmptyMessage,
    /// The events that would accept the signal cannot happen, which is a mistake of the engine.
    #[error("the signal cannot be recorded: {0}; this is a mistake of the engine, please report it")]
    Impossible(String),
    /// The run is paused already.
    #[error("the run is paused already")]
    Paused,
    /// The run is not paused.
    #[error("the run is not paused; a run that waits goes on when its calls are decided or answered")]
    NotPaused,
}

/// Names what asks, for a sentence: the run, a loop or a brain, or a call.
fn asker(path: &Path) -> String {
    match path.last() {
        Some(Segment::Call(..)) => format!("the call `{path}`"),
        None | Some(Segment::Stage(_) | Segment::Iteration(_)) => place(path),
    }
}

fn place(path: &Path) -> String {
    if path.is_root() { "the run".to_owned() } else { format!("`{path}`") }
}

fn nothing_at(path: &Path) -> String {
    match path.last() {
        Some(Segment::Call(..)) => format!("the run has no open call `{path}`"),
        None | Some(Segment::Stage(_) | Segment::Iteration(_)) => {
            format!("{} asks for nothing that could be decided", asker(path))
        }
    }
}

/// Turns a signal into the events that accept it.
///
/// # Errors
///
/// [`Refusal`] when the signal does not fit the run's state.
pub fn admit(
    state: &RunState,
    signal: &Signal,
    now: Timestamp,
    schemas: &dyn Schemas,
) -> Result<Vec<NewEvent>, Refusal> {
    if let Some(seq) = state.signals.get(&signal.id) {
        return Err(Refusal::Repeated { seq: *seq });
    }
    if state.root.is_none() || state.has_ended() {
        return Err(Refusal::Ended);
    }
    match &signal.kind {
        SignalKind::Approve { call, arguments } => approve(state, signal, call, arguments.as_ref(), now, schemas),
        SignalKind::Grant { to, more } => grant(state, signal, to, *more, now),
        SignalKind::Reject { call, reason } if asked_at(state, call).is_some() => {
            let asked = asked_at(state, call).map(|(_, asked)| asked);
            refuse(asked, signal, call, reason.as_ref(), now)
        }
        SignalKind::Reject { call, reason } => reject(state, signal, call, reason.as_ref(), now),
        SignalKind::Webhook { name, identifier, payload } => {
            let mut refused = Refusal::NothingWaits { name: name.clone(), identifier: identifier.clone() };
            for (call, wait) in
                waiting(state).filter(|(_, (_, wait))| wait.webhook == *name && wait.identifier == *identifier)
            {
                match answer(signal, &call, wait, payload, now, schemas) {
                    // What does not fit is refused for good, whatever has expired beside it.
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
            answer(signal, &call, wait, payload, now, schemas)
        }
        SignalKind::Message { text, .. } if text.trim().is_empty() => Err(Refusal::EmptyMessage),
        SignalKind::Message { to, text, message_id } => {
            let path = listener(state, to.as_ref())?;
            let kind = EventKind::LoopMessage {
                text: text.clone(),
                message_id: message_id.clone(),
                from: Speaker::Person,
                signal: Some(signal.id.clone()),
                actor: signal.actor.clone(),
            };
            Ok(vec![NewEvent::new(path, kind)])
        }
        SignalKind::Pause if state.paused.is_some() => Err(Refusal::Paused),
        SignalKind::Pause => Ok(vec![NewEvent::new(
            Path::root(),
            EventKind::BrainPaused { signal: signal.id.clone(), actor: signal.actor.clone() },
        )]),
        SignalKind::Resume if state.paused.is_none() => Err(Refusal::NotPaused),
        SignalKind::Resume => Ok(vec![NewEvent::new(
            Path::root(),
            EventKind::BrainResumed { signal: signal.id.clone(), actor: signal.actor.clone() },
        )]),
        SignalKind::Cancel { reason } => Ok(close::cancel(state, &signal.id, &signal.actor, reason.as_ref())),
    }
}

/// Says what was decided about a call, or last about more for a loop or a brain, from the log: the state forgets the calls
/// of a batch that is over.
pub fn decided<'a>(log: impl IntoIterator<Item = &'a Event>, call: &Path) -> Option<Refusal> {
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
        if let Some(by) = &actor.by {
            how.push_str(" by ");
            how.push_str(by);
        }
        if let Some(reason) = reason {
            how.push_str(": ");
            how.push_str(reason);
        }
        found = Some(Refusal::Decided { call: call.clone(), how });
    }
    found
}

/// The webhook name of a wait for a reply that is addressed to the call itself.
pub(crate) const REPLY: &str = "reply";

fn approve(
    state: &RunState,
    signal: &Signal,
    path: &Path,
    arguments: Option<&Value>,
    now: Timestamp,
    schemas: &dyn Schemas,
) -> Result<Vec<NewEvent>, Refusal> {
    let (frame, call) = pending_call(state, path, now)?;
    if let Some(arguments) = arguments {
        if !call.gate.as_ref().is_some_and(|gate| gate.editable) {
            return Err(Refusal::NotEditable { call: path.clone() });
        }
        let fits = match declared(frame, call) {
            Some(tool) => schemas.check(&tool.parameters, arguments),
            None => Err(format!("the tool `{}` is not declared, so they cannot be checked", call.tool)),
        };
        fits.map_err(|reason| Refusal::Misfit {
            what: format!("the edited arguments of `{path}` do not fit"),
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
    let result = ToolResult::Denied { reason: reason.cloned(), by: signal.actor.by.clone() };
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
        let how = format!("{} has no limit of {}, so more of it grants nothing", asker(to), kind.noun());
        return Err(Refusal::TooLittle { how });
    }
    let (kind, (limit, used)) = (asked.kind, bound.limit(asked.kind).unwrap_or((asked.limit, asked.used)));
    if limit.saturating_add(more.of(kind)) <= used {
        let least = (used - limit).saturating_add(1);
        let [used, limit, least] = [used, limit, least].map(|amount| kind.amount(amount, state.currency.as_deref()));
        let how = format!("that is too little: {used} used, {limit} allowed; it takes at least {least} more");
        return Err(Refusal::TooLittle { how });
    }
    let (decision, reason) = (Decision::Approved, None);
    let (signal, actor) = (signal.id.clone(), signal.actor.clone());
    Ok(vec![NewEvent::new(to.clone(), EventKind::BudgetDecided { decision, more, reason, signal, actor })])
}

fn refuse(
    asked: Option<&PendingGrant>,
    signal: &Signal,
    path: &Path,
    reason: Option<&String>,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Refusal> {
    if asked.is_some_and(|asked| is_void(asked, now)) {
        return Err(Refusal::Expired { call: path.clone() });
    }
    let (decision, more, reason) = (Decision::Rejected, Amounts::default(), reason.cloned());
    let (signal, actor) = (signal.id.clone(), signal.actor.clone());
    Ok(vec![NewEvent::new(path.clone(), EventKind::BudgetDecided { decision, more, reason, signal, actor })])
}

fn is_void(asked: &PendingGrant, now: Timestamp) -> bool {
    asked.expires.is_some_and(|expires| expires <= now)
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

/// Says of a call what it waits for, where that is something else than what was sent.
fn not_asked(state: &RunState, path: &Path, sent: &str) -> Refusal {
    let how = match pending(state).into_iter().find(|pending| pending.call == *path).map(|pending| pending.kind) {
        Some(PendingKind::Approval { .. }) => format!("waits for a decision, not for {sent}"),
        Some(PendingKind::Budget { kind, .. }) => format!("asks for more {}, not for {sent}", kind.noun()),
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

/// Says what is pending, as a clause.
fn open(state: &RunState) -> String {
    let open: Vec<_> = pending(state).iter().map(|pending| place(&pending.call)).collect();
    if open.is_empty() { "nothing is pending".to_owned() } else { format!("pending: {}", open.join(", ")) }
}

type Waiting = (usize, crate::record::WaitSpec);

fn waiting(state: &RunState) -> impl Iterator<Item = (Path, Waiting)> {
    pending(state).into_iter().flat_map(|pending| {
        let waits = match pending.kind {
            PendingKind::Answer { waits } => waits,
            PendingKind::Approval { .. } | PendingKind::Budget { .. } => Vec::new(),
        };
        let call = pending.call;
        waits.into_iter().enumerate().map(move |wait| (call.clone(), wait))
    })
}

fn answer(
    signal: &Signal,
    call: &Path,
    (index, wait): Waiting,
    payload: &Value,
    now: Timestamp,
    schemas: &dyn Schemas,
) -> Result<Vec<NewEvent>, Refusal> {
    if wait.expires.is_some_and(|expires| expires <= now) {
        return Err(Refusal::Expired { call: call.clone() });
    }
    schemas
        .check(&wait.schema, payload)
        .map_err(|reason| Refusal::Misfit { what: format!("the payload for `{call}` does not fit"), reason })?;
    let kind = EventKind::LoopResume {
        cause: ResumeCause::Answered,
        wait: u32::try_from(index).unwrap_or(u32::MAX),
        payload: sorted(payload),
        signal: Some(signal.id.clone()),
        actor: signal.actor.clone(),
    };
    Ok(vec![NewEvent::new(call.clone(), kind)])
}

/// Sorts the keys of what came from outside, whatever features other crates switch on in `serde_json`: the model reads it
/// as whoever reads the log does.
fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}

/// Finds the loop that hears a message: the named one, or the one open loop of the outermost brain that has one.
fn listener(state: &RunState, to: Option<&Path>) -> Result<Path, Refusal> {
    // No iteration follows the one in which a loop sums up, so what is said then would be read by nobody.
    let is_last = |frame: &LoopFrame| frame.wrap_up.is_some() && !matches!(frame.phase, LoopPhase::Prepare);
    let hears = |frame: &LoopFrame| !matches!(frame.phase, LoopPhase::Ending(_)) && !is_last(frame);
    if let Some(path) = to {
        return match state.loop_at(path) {
            Some(frame) if frame.path == *path && hears(frame) => Ok(path.clone()),
            _ => Err(Refusal::NoListener(format!("the run has no open loop `{path}`"))),
        };
    }
    let mut brain = state.root.as_deref();
    while let Some(frame) = brain {
        match &frame.stage {
            Stage::Loop(inner) if hears(inner) => return Ok(inner.path.clone()),
            Stage::Brain(inner) => brain = Some(inner),
            _ => break,
        }
    }
    Err(Refusal::NoListener("no loop of the run is open, so nobody would hear the message".to_owned()))
}
