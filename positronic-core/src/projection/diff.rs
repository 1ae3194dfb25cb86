//! Differences between two runs.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::machine::{IllegalEvent, RunState, status};
use crate::record::{Event, EventKind, Overrides, Seq, Status, Usage};

/// The differences between two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunDiff {
    /// Their inputs, if those differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<[Inputs; 2]>,
    /// The number of equal events from the start of both. Times, workers, inputs and provider metadata are not
    /// compared.
    pub same: usize,
    /// The first different events; `None` if both are equal to their ends.
    pub parts: Option<Divergence>,
    /// The JSON Patch (RFC 6902) from the first run's state to the second's.
    pub state: Value,
    /// Their statuses.
    pub status: [Status; 2],
    /// Their tokens.
    pub usage: [Usage; 2],
}

/// The inputs of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Inputs {
    /// Its options.
    pub options: Value,
    /// A fork's overrides of the brain's code.
    pub overrides: Overrides,
}

/// The first difference between two runs; `None` for a run without further events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Divergence {
    /// The event of the first run.
    pub one: Option<DivergentEvent>,
    /// The event of the second run.
    pub other: Option<DivergentEvent>,
}

/// A different event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DivergentEvent {
    /// Its number.
    pub seq: Seq,
    /// Its path.
    pub path: crate::record::Path,
    /// Its content, as JSON.
    pub body: Value,
}

/// Compares two runs by their logs.
///
/// # Errors
///
/// [`IllegalEvent`] when a log does not hold together.
pub fn diff(one: &[Arc<Event>], other: &[Arc<Event>]) -> Result<RunDiff, IllegalEvent> {
    let (left, right) = (said(one), said(other));
    let same = left.iter().zip(&right).take_while(|(a, b)| (&a.path, &a.body) == (&b.path, &b.body)).count();
    let parts = Divergence { one: left.get(same).cloned(), other: right.get(same).cloned() };
    let (a, b) = (replayed(one)?, replayed(other)?);
    let state = |state: &RunState| state.root.as_ref().map(|root| Value::clone(&root.state)).unwrap_or_default();
    let usage = |state: &RunState| state.root.as_ref().map(|root| root.usage).unwrap_or_default();
    let patch = json_patch::diff(&state(&a), &state(&b));
    let given = given(one).zip(given(other)).filter(|(one, other)| one != other);
    Ok(RunDiff {
        given: given.map(|(one, other)| [one, other]),
        same,
        parts: (parts.one.is_some() || parts.other.is_some()).then_some(parts),
        state: serde_json::to_value(patch).unwrap_or_default(),
        status: [status(&a), status(&b)],
        usage: [usage(&a), usage(&b)],
    })
}

fn given(log: &[Arc<Event>]) -> Option<Inputs> {
    let EventKind::BrainStart(begin) = &log.first()?.kind else { return None };
    let overrides = begin.start.as_ref().map(|start| start.overrides.clone()).unwrap_or_default();
    Some(Inputs { options: begin.options.clone(), overrides })
}

fn replayed(log: &[Arc<Event>]) -> Result<RunState, IllegalEvent> {
    RunState::replay(log.iter().map(|event| &**event))
}

/// Returns the content of a log without what differs between any two runs.
fn said(log: &[Arc<Event>]) -> Vec<DivergentEvent> {
    log.iter()
        .filter(|event| !event.kind.is_about_workers())
        .map(|event| {
            let mut body = event.kind.to_value();
            if let Some(fields) = body.as_object_mut() {
                for name in ["start", "duration", "metadata", "signal", "due", "expires"] {
                    fields.remove(name);
                }
                // A nested brain's inputs follow from the events before.
                if event.seq == Seq(0) {
                    fields.remove("options");
                }
            }
            DivergentEvent { seq: event.seq, path: event.path.clone(), body }
        })
        .collect()
}
