//! What lists show of a run beside its state: its last event, what it is about, its result, the tools it has called, what its models have
//! used, and the loop that a limit has cut off or the guard that has ended it.
//!
//! They come from the events of an append and the row before it, so that no list reads a log.

use std::borrow::Cow;
use std::sync::Arc;

use super::gist::{gist, sentence};
use crate::machine::state::RunState;
use crate::record::{
    Actor, CODE, Event, EventKind, LastEvent, LoopOutcome, ModelUse, Money, Part, Path, ResponseMetadata, RunSummary,
    Segment, Usage,
};

/// The largest number of tools.
const TOOLS: usize = 64;
/// The largest number of models.
const MODELS: usize = 16;

/// Adds what some events say to the row of their run; `state` is the run's state after them.
pub(crate) fn add_events(row: &mut RunSummary, state: &RunState, events: &[Arc<Event>]) {
    if let Some(last) = last_event(state, events) {
        row.last_event = Some(last);
    }
    for event in events {
        note(row, event);
        add_answer(row, state, event);
    }
}

/// Returns the last of some events that says what the run does.
fn last_event(state: &RunState, events: &[Arc<Event>]) -> Option<LastEvent> {
    let event = events.iter().rfind(|event| !is_bookkeeping(&event.kind))?;
    let name = match &event.kind {
        EventKind::LoopModelCall { model, .. } => Some(model.as_str().into()),
        _ => state.call(&event.path).map(|call| call.tool.as_str().into()),
    };
    Some(LastEvent { kind: Cow::Borrowed(event.kind.name()), path: event.path.clone(), name })
}

/// Returns whether an event is about workers or bookkeeping, and not about what the run does.
const fn is_bookkeeping(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunClaimed { .. }
            | EventKind::RunReleased { .. }
            | EventKind::RunNotClaimed { .. }
            | EventKind::StepBlocked {}
            | EventKind::ValueRecorded { .. }
            | EventKind::ChildStart(_)
            | EventKind::LoopIteration(_)
            | EventKind::LoopOutput { .. }
            | EventKind::LoopTrigger { .. }
            | EventKind::LoopPluginChanged { .. }
    )
}

/// Adds what an answer has used to its run and to its model, as limits of money count it. An answer that a fork shares is counted by its origin.
fn add_answer(row: &mut RunSummary, state: &RunState, event: &Event) {
    let Some(metadata) = event.kind.answer_metadata() else { return };
    if row.forked_from.as_ref().is_some_and(|(_, at)| event.seq <= *at) {
        return;
    }
    let charge = metadata.cost.as_ref().filter(|charge| state.currency.as_deref() == Some(&*charge.currency));
    let known = charge.filter(|_| !metadata.is_free()).map(|charge| charge.amount).unwrap_or_default();
    let is_partial = charge.is_none() && !metadata.is_free();
    let was_partial = row.is_partly_priced();
    row.usage += metadata.usage;
    if is_partial || known > Money::default() {
        let cost = row.cost.get_or_insert_default();
        cost.known += known;
        cost.is_partial |= is_partial || was_partial;
        if known > Money::default() {
            cost.currency.clone_from(&state.currency);
        }
    }
    let Some(used) = use_of(row, metadata) else { return };
    used.usage += metadata.usage;
    used.known += known;
    used.is_partial |= is_partial;
}

/// Returns what the model of an answer has used; `None` for answers without a model, and if the run has too many.
fn use_of<'a>(row: &'a mut RunSummary, metadata: &ResponseMetadata) -> Option<&'a mut ModelUse> {
    let name = metadata.answered_by.as_ref().unwrap_or(&metadata.model);
    if metadata.provider == CODE || (metadata.provider.is_empty() && name.is_empty()) {
        return None;
    }
    let provider = metadata.provider.as_str();
    let is_it = |known: &ModelUse| match known.model.split_once('/') {
        Some(known) => known == (provider, name),
        None => name.is_empty() && *known.model == *provider,
    };
    let place = row.models.iter().position(is_it);
    if place.is_none() && row.models.len() == MODELS {
        return None;
    }
    let place = place.unwrap_or_else(|| {
        let (usage, known) = (Usage::default(), Money::default());
        let model = if name.is_empty() { provider.into() } else { format!("{provider}/{name}").into() };
        let new = ModelUse { model, usage, known, is_partial: false };
        row.models = row.models.iter().cloned().chain([new]).collect();
        row.models.len() - 1
    });
    Arc::make_mut(&mut row.models).get_mut(place)
}

fn note(row: &mut RunSummary, event: &Event) {
    let path = &event.path;
    match &event.kind {
        EventKind::BrainStart(start) if path.is_root() => {
            let message = start.start.as_ref().and_then(|start| start.message.as_ref());
            let input = message.and_then(|message| sentence(&message.text)).or_else(|| gist(&start.options));
            row.input = input.or(row.input.take());
        }
        // A brain without options is about what its first loop begins with.
        EventKind::LoopStart { input: Some(input), .. } if row.input.is_none() && !is_below_call(path) => {
            row.input = sentence(input);
        }
        EventKind::GuardChecked { passed: false, .. } if path.parent().is_some_and(|brain| brain.is_root()) => {
            row.stopped_by = Some(path.clone());
        }
        EventKind::BrainComplete { result } if path.is_root() => {
            row.result = gist(result).or(row.result.take());
            row.why = row.stopped_by.as_ref().map(|guard| format!("ended by the guard `{guard}`"));
        }
        EventKind::BrainCancelled { actor, reason, .. } if path.is_root() => {
            row.why = cancellation(actor, reason.as_deref());
        }
        EventKind::LoopModelResult { parts, .. } if !is_below_call(path) => {
            let mut texts =
                parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(&**text) } else { None });
            if let Some(first) = texts.next() {
                let rest: String = texts.collect();
                let said = if rest.is_empty() { sentence(first) } else { sentence(&[first, &rest].concat()) };
                row.result = said.or(row.result.take());
            }
        }
        EventKind::LoopToolCall(call) => {
            let tool = call.tool.as_str();
            if row.tools.len() < TOOLS && !row.tools.iter().any(|known| known == tool) {
                Arc::make_mut(&mut row.tools).push(tool.to_owned());
            }
        }
        EventKind::LoopComplete { outcome, .. } if !is_below_call(path) => match outcome {
            LoopOutcome::MaxIterations | LoopOutcome::Limit { .. } => row.cut_off = Some(path.clone()),
            _ if row.cut_off.as_ref() == Some(path) => row.cut_off = None,
            _ => {}
        },
        _ => {}
    }
}

/// Returns who has cancelled a run and why; `None` if neither is known.
fn cancellation(actor: &Actor, reason: Option<&str>) -> Option<String> {
    match (&actor.by, reason) {
        (Some(by), Some(reason)) => Some(format!("by {by}: {reason}")),
        (Some(by), None) => Some(format!("by {by}")),
        (None, reason) => reason.map(str::to_owned),
    }
}

fn is_below_call(path: &Path) -> bool {
    path.segments().any(|segment| matches!(segment, Segment::Call(..)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cost_of_a_run_whose_row_had_none_is_only_a_part() {
        let line = r#"{"seq":1,"at":5,"type":"LOOP_MODEL_RESULT","parts":[],"metadata":{"provider":"p","model":"m","finish":"stop","usage":{"input":4},"cost":{"amount":"0.002","currency":"USD"}},"duration":1}"#;
        let event = Arc::new(Event::from_json(line).unwrap());
        let state = RunState { currency: Some("USD".into()), ..RunState::default() };
        for (fields, is_partial) in [
            (json!({ "usage": { "input": 9 } }), true),
            (json!({ "usage": { "input": 9 }, "active": 0 }), false),
            (json!({ "usage": {} }), false),
        ] {
            // An earlier version had its last event in words.
            let mut row = json!({ "run": "r", "brain": "b", "status": "running", "last": "asked m", "since": 0, "started": 0, "at": 0, "next": 1 });
            row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let mut row: RunSummary = serde_json::from_value(row).unwrap();

            add_events(&mut row, &state, &[Arc::clone(&event)]);

            assert_eq!(row.last_event.unwrap().kind, "LOOP_MODEL_RESULT");
            let cost = row.cost.unwrap();
            assert_eq!((cost.known.nanos(), cost.is_partial), (2_000_000, is_partial), "{fields}");
        }
    }
}
