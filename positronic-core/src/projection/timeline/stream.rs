//! Answers of models in a [`Timeline`]: streaming and complete.

use std::sync::Arc;
use std::time::Duration;

use super::detail::{Answer, AnswerNode, AnswerOutcome, Stream, StreamPart};
use super::node::{Node, NodeId, NodeKind, NodeStatus};
use super::timeline_tree::Timeline;
use crate::projection::{CallCost, Cost};
use crate::record::{CODE, CallState, Delta, DeltaKind, Event, EventKind, Part, Path, ResponseMetadata, Segment};

/// Applies a piece that streams between two events.
pub(super) fn apply_delta(timeline: &mut Timeline, delta: &Delta) {
    if delta.kind == DeltaKind::Progress {
        let call = timeline.places.get(&delta.path).copied().and_then(|id| timeline.call_mut(id));
        if let Some(call) = call.filter(|call| call.state == CallState::Running) {
            call.progress = Some(delta.text.clone());
        }
        return;
    }
    let Some(id) = timeline.open.get(&delta.path).copied() else { return };
    if let Some(Node { kind: NodeKind::Answer(answer), .. }) = timeline.node_mut(id)
        && delta.attempt >= answer.attempt
    {
        answer.stream(delta);
    }
}

/// Folds an event of a request to a model; `here` is what is around its path.
pub(super) fn model_event(timeline: &mut Timeline, here: NodeId, event: &Event) {
    let path = &event.path;
    let here = match path.last() {
        Some(Segment::Question(iteration, _)) => {
            timeline.innermost(&path.parent().unwrap_or_default().iteration(iteration))
        }
        _ => here,
    };
    let (outcome, status) = match &event.kind {
        EventKind::LoopModelCall { attempt, model, question } => {
            // The request is sent again after a crash.
            end_answer(timeline, path, AnswerOutcome::Abandoned, NodeStatus::Interrupted, event);
            let (model, attempt, question) = (model.clone(), *attempt, question.clone());
            let answer = AnswerNode { model, attempt, question, stream: None, outcome: None };
            let id = timeline.add(here, event, NodeStatus::Running, NodeKind::Answer(Box::new(answer)));
            // The loop still asks for the answer that a guard asks about.
            if !path.is_question() {
                let stage = timeline.stage_of(here);
                if let Some(stage) = timeline.stage_mut(stage) {
                    stage.asking = Some(id);
                }
            }
            return;
        }
        EventKind::LoopModelResult { parts, metadata, duration } => {
            let answer = answer(timeline, event, parts, metadata, *duration);
            (AnswerOutcome::Answered(answer), NodeStatus::Done)
        }
        EventKind::LoopAnswerRefused { guard, message, parts, metadata, duration, .. } => {
            let answer = answer(timeline, event, parts, metadata, *duration);
            (AnswerOutcome::Refused { guard: guard.clone(), message: message.clone(), answer }, NodeStatus::Failed)
        }
        EventKind::LoopModelRetry { error, due, .. } => {
            (AnswerOutcome::Failed { error: error.clone(), due: *due }, NodeStatus::Failed)
        }
        _ => return,
    };
    if !timeline.open.contains_key(path) {
        // The log lacks the request: the answer is scripted in code, or the log begins later.
        let model = String::new();
        let answer = AnswerNode { model, attempt: 0, question: None, stream: None, outcome: None };
        timeline.add(here, event, NodeStatus::Running, NodeKind::Answer(Box::new(answer)));
    }
    end_answer(timeline, path, outcome, status, event);
}

/// Ends the open request at a path.
fn end_answer(timeline: &mut Timeline, path: &Path, outcome: AnswerOutcome, status: NodeStatus, event: &Event) {
    let Some(id) = timeline.open.get(path).copied() else { return };
    let Some(Node { kind: NodeKind::Answer(answer), parent, .. }) = timeline.node_mut(id) else { return };
    (answer.stream, answer.outcome) = (None, Some(outcome));
    let parent = parent.unwrap_or(NodeId::ROOT);
    timeline.open.remove(path);
    timeline.close(id, status, event.at);
    let stage = timeline.stage_of(parent);
    if let Some(stage) = timeline.stage_mut(stage).filter(|stage| stage.asking == Some(id)) {
        stage.asking = None;
    }
}

/// Counts what an answer used, and returns its cost.
pub(super) fn count(timeline: &mut Timeline, event: &Event, metadata: &ResponseMetadata) -> Option<Cost> {
    timeline.usage += metadata.usage;
    timeline.answers += u64::from(metadata.provider != CODE);
    let call = timeline.prices.as_ref().and_then(|prices| CallCost::of(event, prices));
    let cost = call.as_ref().map(|call| call.cost);
    if let (Some(call), Some(costs)) = (call, &mut timeline.costs) {
        timeline.spent += &call;
        costs.calls.push(call);
    }
    cost
}

/// Counts an answer and returns it for a node. An answer scripted in code is not counted.
fn answer(
    timeline: &mut Timeline,
    event: &Event,
    parts: &Arc<[Part]>,
    metadata: &ResponseMetadata,
    duration: Duration,
) -> Answer {
    let cost = count(timeline, event, metadata);
    Answer { parts: Arc::clone(parts), metadata: metadata.clone(), duration, cost }
}

impl AnswerNode {
    fn stream(&mut self, delta: &Delta) {
        let begins = (delta.attempt, delta.generation);
        let stream = self.stream.get_or_insert_with(|| Stream::of(begins));
        if begins < (stream.attempt, stream.generation) {
            return;
        }
        if begins > (stream.attempt, stream.generation) {
            *stream = Stream::of(begins);
        }
        // A piece with an earlier number is a copy.
        if delta.n < stream.pieces {
            return;
        }
        stream.gap |= delta.n > stream.pieces;
        stream.pieces = delta.n.saturating_add(1);
        let is_same =
            |known: &&mut StreamPart| (known.part, known.call, known.kind) == (delta.part, delta.call, delta.kind);
        match stream.parts.iter_mut().rev().find(is_same) {
            Some(part) => {
                part.text.push_str(&delta.text);
                part.tool = delta.tool.clone().or_else(|| part.tool.take());
            }
            None => stream.parts.push(StreamPart {
                part: delta.part,
                kind: delta.kind,
                call: delta.call,
                tool: delta.tool.clone(),
                text: delta.text.clone(),
            }),
        }
    }
}

impl Stream {
    fn of((attempt, generation): (u32, u32)) -> Self {
        Self { attempt, generation, ..Self::default() }
    }
}
