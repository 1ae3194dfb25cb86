//! An answer of a model with its calls validated: its result, its calls, and the results of those that do not run.

use std::time::Duration;

use smallvec::{SmallVec, smallvec};

use super::plugins::plugin_steps;
use super::{Answered, Validated};
use crate::machine::stages::{denial, denied_before};
use crate::machine::{LoopFrame, RunState};
use crate::record::{EventKind, NewEvent, Part, Path, Segment, ToolCall, ToolResult};

/// Records an answer and its calls. A call that was refused by the validation, or denied by a person before, has its result at once.
pub(super) fn answer(state: &RunState, path: &Path, answered: Answered, duration: Duration) -> Vec<NewEvent> {
    let Answered { mut parts, metadata, calls, plugins, failed, replaced } = answered;
    let loop_at = path.parent().unwrap_or_default();
    let iteration = match path.last() {
        Some(Segment::Iteration(iteration)) => iteration,
        _ => 0,
    };
    name_every_call(&mut parts, calls.len());
    let mut new_events = Vec::with_capacity(1 + calls.len());
    let mut results = Vec::new();
    if let Some(brain) = state.owner(path) {
        new_events.extend(plugin_steps(path, &brain.plugins, &plugins));
    }
    new_events.extend(failed.into_iter().map(|(plugin, message)| {
        NewEvent::new(path.clone(), EventKind::LoopPluginFailed { plugin, message, update: None })
    }));
    new_events.extend(replaced.into_iter().map(|replaced| replaced.event(path)));
    new_events
        .push(NewEvent::new(path.clone(), EventKind::LoopModelResult { parts: parts.into(), metadata, duration }));
    for (index, Validated { call, refused, replaced }) in (0..).zip(calls) {
        let path = loop_at.call(iteration, index);
        let denied = state.loop_at(&path).is_some_and(|frame| is_denied(frame, &call));
        let result = match refused {
            Some(message) => Some(ToolResult::Error { message }),
            None if denied => Some(denied_before()),
            None => None,
        };
        new_events.push(NewEvent::new(path.clone(), EventKind::LoopToolCall(Box::new(call))));
        new_events.extend(replaced.into_iter().map(|replaced| replaced.event(&path)));
        if let Some(result) = result {
            results.push(NewEvent::new(path, EventKind::LoopToolResult { result, duration: None, change: None }));
        }
    }
    new_events.extend(results);
    new_events
}

/// Says whether a person has refused an identical call of this loop.
fn is_denied(frame: &LoopFrame, call: &ToolCall) -> bool {
    !frame.denials.is_empty() && frame.denials.contains(&denial(&call.tool, &call.arguments))
}

/// Gives every call exactly one part: an adapter may have left one out, or named one twice.
fn name_every_call(parts: &mut Vec<Part>, calls: usize) {
    let mut named: SmallVec<[bool; 16]> = smallvec![false; calls];
    parts.retain(|part| match part {
        Part::Call { index } => {
            let known = usize::try_from(*index).ok().and_then(|index| named.get_mut(index));
            known.is_some_and(|known| !std::mem::replace(known, true))
        }
        _ => true,
    });
    let unnamed = (0..).zip(named).filter(|(_, is_named)| !is_named);
    parts.extend(unnamed.map(|(index, _)| Part::Call { index }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_an_answer_has_one_part() {
        let text = || Part::Text { text: "so".to_owned() };
        let mut parts = vec![Part::Call { index: 1 }, text(), Part::Call { index: 1 }, Part::Call { index: 9 }];

        name_every_call(&mut parts, 2);

        assert_eq!(parts, [Part::Call { index: 1 }, text(), Part::Call { index: 0 }]);
    }
}
