//! A person's grant of more of a limit, or its refusal.

use super::refusal::{Refusal, open, subject};
use crate::machine::grants::PendingGrant;
use crate::machine::limits::asked_at;
use crate::machine::state::RunState;
use crate::record::{Amounts, BudgetRequest, Decision, EventKind, NewEvent, Path, Signal, Timestamp};

pub(super) fn grant(
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

pub(super) fn refuse(
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
