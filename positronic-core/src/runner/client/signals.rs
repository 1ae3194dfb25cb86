//! Sending of signals: checked against the run's state, and appended by their sender.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::{
    KNOWN_SIGNALS, Refusal, RunState, admit, earlier_decision, nothing_waits, pending, waits_since, with_earlier_answer,
};
use crate::record::{
    EventKind, NewEvent, RunId, Seq, Signal, SignalId, SignalKind, Timestamp, check_document, check_message, check_text,
};
use crate::runner::Clock;
use crate::runner::worker::append::{Extras, append, append_of, follow, stamp};
use crate::store::{EventStore, InboundWebhook, StoreError};
use crate::tools::{check_caller_tools, check_json};

/// The reason why a signal was not accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// It does not fit the run's state; nothing changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The outcome of sending signals.
pub(in crate::runner) struct Sent {
    /// The event that accepts each of them.
    pub(super) accepted: Vec<Seq>,
    /// The number after all of them.
    pub(super) next: Seq,
    /// Whether any of them was new to the run.
    pub(in crate::runner) is_new: bool,
}

/// Refuses a signal that is too large for a log.
pub(super) fn recordable(signal: &Signal, max_bytes: usize) -> Result<(), Refusal> {
    let (what, checked) = match &signal.kind {
        SignalKind::Approve { arguments: Some(arguments), .. } => {
            ("the edited arguments", check_document(arguments, max_bytes))
        }
        SignalKind::Webhook { payload, .. } | SignalKind::Reply { payload, .. } => {
            ("the answer", check_document(payload, max_bytes))
        }
        SignalKind::UpdatePlugin { update, .. } => ("the update", check_document(update, max_bytes)),
        SignalKind::Message { text: said, files, caller_tools, .. } => {
            check_caller_tools(caller_tools.as_deref().unwrap_or_default()).map_err(|error| Refusal::Misfit {
                what: "the tools of the caller are refused".to_owned(),
                reason: error.to_string(),
            })?;
            ("the message", check_message(said, files, max_bytes))
        }
        SignalKind::Reject { reason: Some(reason), .. } | SignalKind::Cancel { reason: Some(reason) } => {
            ("the reason", check_text(reason, max_bytes))
        }
        // The end of a child was recorded in the child's log.
        SignalKind::ChildEnded { .. }
        | SignalKind::Approve { arguments: None, .. }
        | SignalKind::Reject { reason: None, .. }
        | SignalKind::Cancel { reason: None }
        | SignalKind::Grant { .. }
        | SignalKind::Pause
        | SignalKind::Resume => return Ok(()),
    };
    let what = format!("{what} cannot be recorded");
    checked.map_err(|error| Refusal::Misfit { what, reason: error.to_string() })
}

/// Sends signals to a run, all or none: admits them one after the other and appends them at once. `state` is the
/// run's state as far as the sender knows it, and `mail` the entry of the mailbox that the signal delivers.
pub(in crate::runner) async fn send(
    store: &dyn EventStore,
    clock: &dyn Clock,
    run: &RunId,
    mut state: RunState,
    signals: &[Signal],
    mail: Option<&InboundWebhook>,
) -> Result<Sent, SignalError> {
    loop {
        let now = clock.now().max(state.at);
        let before = long_ago(store, run, &state, signals).await?;
        let (after, events, accepted) = match fold(&state, signals, &before, mail, now) {
            Ok(folded) => folded,
            // The sender's state may lag behind the log, and only the log can refuse.
            Err(_) if catch_up(store, run, &mut state).await? => continue,
            Err(refused) => return Err(with_decision(store, run, refused.0, &refused.1).await?.into()),
        };
        if events.is_empty() {
            if let Some(mail) = mail {
                // The run has received it otherwise, so no other run must get it.
                store.discard(&mail.id).await?;
            }
            return Ok(Sent { accepted, next: state.next, is_new: false });
        }
        let row = store.run(run).await?;
        let deliveries = mail.iter().map(|mail| mail.id.clone()).collect();
        let extras = Extras { deliveries, ..Extras::default() };
        match append(store, run, append_of(run, &state, &after, Some(&row), &events, extras)).await {
            Ok(()) => return Ok(Sent { accepted, next: after.next, is_new: true }),
            Err(StoreError::Conflict { .. }) => {
                catch_up(store, run, &mut state).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

type Decided = (RunState, Vec<Arc<crate::record::Event>>, Vec<Seq>);

/// Finds the signals that were accepted so long ago that the state no longer has them.
async fn long_ago(
    store: &dyn EventStore,
    run: &RunId,
    state: &RunState,
    signals: &[Signal],
) -> Result<BTreeMap<SignalId, Seq>, StoreError> {
    let mut known = BTreeMap::new();
    // A state with fewer signals than its maximum has all of them.
    if state.signals.len() < KNOWN_SIGNALS {
        return Ok(known);
    }
    for Signal { id, .. } in signals.iter().filter(|signal| !state.signals.contains_key(&signal.id)) {
        known.extend(store.accepted(run, id).await?.map(|seq| (id.clone(), seq)));
    }
    Ok(known)
}

/// Admits signals one after the other. A signal that was accepted before returns its earlier number.
fn fold(
    state: &RunState,
    signals: &[Signal],
    before: &BTreeMap<SignalId, Seq>,
    mail: Option<&InboundWebhook>,
    now: Timestamp,
) -> Result<Decided, Box<(Refusal, Signal)>> {
    let (mut after, mut events, mut accepted) = (state.clone(), Vec::new(), Vec::new());
    for signal in signals {
        if let Some(seq) = before.get(&signal.id) {
            accepted.push(*seq);
            continue;
        }
        let mut new_events: Vec<NewEvent> = match admit(&after, signal, now, &check_json) {
            Ok(new_events) => new_events,
            Err(Refusal::Repeated { seq }) => {
                accepted.push(seq);
                continue;
            }
            Err(refusal) => return Err(Box::new((refusal, signal.clone()))),
        };
        if let (Some(mail), SignalKind::Webhook { name, identifier, .. }) = (mail, &signal.kind)
            && new_events.iter().any(|event| is_too_old(event, &after, mail.at))
        {
            return Err(Box::new((nothing_waits(&after, name, identifier), signal.clone())));
        }
        if let Some(mail) = mail {
            new_events.iter_mut().for_each(|event| mark_older(event, &after, mail.at));
        }
        accepted.push(after.next);
        let stamped = stamp(new_events, after.next, now, None);
        after = follow(&after, &stamped)
            .map_err(|error| Box::new((Refusal::Impossible(error.to_string()), signal.clone())))?;
        events.extend(stamped);
    }
    Ok((after, events, accepted))
}

/// Returns whether an answer was received before a wait that takes only later ones.
fn is_too_old(event: &NewEvent, state: &RunState, at: Timestamp) -> bool {
    let (EventKind::LoopResume { wait, .. } | EventKind::StageResume { wait, .. }) = &event.kind else { return false };
    let asked = pending(state).into_iter().find(|pending| pending.call == event.path);
    let is_fresh = asked.is_some_and(|asked| {
        usize::try_from(*wait).ok().and_then(|wait| asked.kind.waits().get(wait)).is_some_and(|wait| wait.fresh)
    });
    is_fresh && waits_since(state, &event.path).is_some_and(|asked| at < asked)
}

/// Marks an answer that was received before the wait that it ends.
fn mark_older(event: &mut NewEvent, state: &RunState, at: Timestamp) {
    let (EventKind::LoopResume { received, .. } | EventKind::StageResume { received, .. }) = &mut event.kind else {
        return;
    };
    if waits_since(state, &event.path).is_some_and(|asked| at < asked) {
        *received = Some(at);
    }
}

/// Folds the events after a state. Returns whether there were any.
async fn catch_up(store: &dyn EventStore, run: &RunId, state: &mut RunState) -> Result<bool, StoreError> {
    let events = store.read(run, state.next, usize::MAX).await?;
    *state = follow(state, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
    Ok(!events.is_empty())
}

/// Adds to the refusal of a decision what was decided, even after the end of the batch or the run, and to that of a reply who has answered.
async fn with_decision(
    store: &dyn EventStore,
    run: &RunId,
    refusal: Refusal,
    signal: &Signal,
) -> Result<Refusal, StoreError> {
    if let (SignalKind::Reply { .. }, Refusal::NoSuchCall { .. }) = (&signal.kind, &refusal) {
        let log = store.read(run, Seq(0), usize::MAX).await?;
        return Ok(with_earlier_answer(refusal, log.iter().map(|event| &**event)));
    }
    let (SignalKind::Approve { call, .. } | SignalKind::Reject { call, .. } | SignalKind::Grant { to: call, .. }) =
        &signal.kind
    else {
        return Ok(refusal);
    };
    use Refusal::{Decided, Ended, NoSuchCall, NotAsked};
    if !matches!(refusal, Decided { .. } | NoSuchCall { .. } | NotAsked { .. } | Ended) {
        return Ok(refusal);
    }
    let log = store.read(run, Seq(0), usize::MAX).await?;
    Ok(earlier_decision(log.iter().map(|event| &**event), call).unwrap_or(refusal))
}
