//! The answer to a call or a stage that waits: a webhook's payload or a reply. The first one resumes it.

use serde_json::Value;

use super::external_json::{SchemaCheck, sorted};
use super::refusal::Refusal;
use crate::machine::state::RunState;
use crate::machine::status::pending;
use crate::record::{EventKind, NewEvent, Path, ResumeCause, Segment, Signal, Timestamp, WaitSpec};

/// The webhook name of a wait for a reply to the call itself.
pub(crate) const REPLY: &str = WaitSpec::REPLY;

pub(in crate::machine) type OpenWait = (usize, WaitSpec);

pub(in crate::machine) fn waiting(state: &RunState) -> impl Iterator<Item = (Path, OpenWait)> {
    pending(state).into_iter().flat_map(|pending| {
        let (waits, call) = (pending.kind.waits().to_vec(), pending.call);
        waits.into_iter().enumerate().map(move |wait| (call.clone(), wait))
    })
}

pub(in crate::machine) fn answer(
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
