//! Timers: what an append changes in them.

use std::sync::Arc;

use serde_json::Value;

use crate::machine::RunState;
use crate::record::{Actor, Event, EventKind, Fired, RunId, Start, Timer, Timestamp, TriggerChange};
use crate::store::TimerChange;

/// Returns the changes of timers in a worker's append.
pub(super) fn timers(run: &RunId, after: &RunState, events: &[Arc<Event>]) -> Vec<TimerChange> {
    let mut changes = Vec::new();
    for event in events {
        let EventKind::LoopTrigger { change } = &event.kind else { continue };
        match (change, &after.root) {
            (TriggerChange::Set(trigger), Some(root)) => changes.push(TimerChange::Set(Timer {
                trigger: trigger.clone(),
                brain: Arc::clone(&root.title),
                options: Value::clone(&root.options),
                user: after.start.user.clone(),
                conversation: after.start.conversation.clone(),
                budget: after.start.budget.clone().map(Box::new),
                origin: after.start.fired.as_ref().map_or_else(|| run.clone(), |fired| fired.origin.clone()),
                starter: starter(&after.start.actor).map(Box::new),
                fired: 0,
                scheduled: None,
            })),
            (TriggerChange::Deleted(id), _) => changes.push(TimerChange::Deleted(id.clone())),
            (TriggerChange::Set(_), None) => {}
        }
    }
    changes
}

/// Returns who has started a run, without the channel and the trace of that start.
fn starter(Actor { by, user, .. }: &Actor) -> Option<Actor> {
    let starter = Actor { by: by.clone(), user: user.clone(), ..Actor::default() };
    (starter != Actor::default()).then_some(starter)
}

/// Returns the change of the timer that starts a run.
pub(in crate::runner) fn fires(start: &Start, now: Timestamp) -> Option<TimerChange> {
    let Fired { trigger, .. } = start.fired.as_ref()?;
    Some(TimerChange::Fired { id: trigger.id.clone(), due: trigger.due, next: trigger.next(now) })
}
