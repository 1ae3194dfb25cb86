//! Answers of models: their pieces while they stream, and the whole answers of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use positronic_core::record::{Delta, DeltaKind, Part, PartialAnswer, Path, Segment};
use positronic_core::runner::AnswerReader;
use serde_json::Value;

use super::{Item, Placed, Projection, TextKind};

/// What was sent of an answer in flight.
#[derive(Debug)]
pub(super) struct LiveAnswer {
    id: String,
    attempt: u32,
    generation: u32,
    /// The number of the next piece.
    next: u32,
    texts: BTreeMap<u32, LiveText>,
    /// The arguments of calls, by the call's index.
    calls: BTreeMap<u32, String>,
}

#[derive(Debug)]
struct LiveText {
    id: String,
    kind: TextKind,
    sent: String,
}

impl LiveAnswer {
    const fn new(id: String, attempt: u32, generation: u32) -> Self {
        Self { id, attempt, generation, next: 0, texts: BTreeMap::new(), calls: BTreeMap::new() }
    }

    /// Returns whether an answer continues everything that was sent of it.
    fn fits(&self, parts: &[Part]) -> bool {
        self.texts.iter().all(|(part, live)| {
            let part = usize::try_from(*part).ok().and_then(|part| parts.get(part));
            part.and_then(text_of).is_some_and(|(kind, text)| kind == live.kind && text.starts_with(&live.sent))
        })
    }
}

fn text_of(part: &Part) -> Option<(TextKind, &str)> {
    match part {
        Part::Text { text } | Part::Refusal { text } => Some((TextKind::Answer, text)),
        Part::Reasoning { text, .. } => Some((TextKind::Reasoning, text)),
        _ => None,
    }
}

impl Projection {
    /// Shows the progress of a tool. Pieces of answers are read from the worker.
    pub(crate) fn progress(&mut self, delta: &Delta) -> Vec<Placed> {
        if delta.kind == DeltaKind::Progress && !self.is_hidden(&delta.path) {
            let call = self.call_id(&delta.path);
            self.push(&delta.path, Item::Progress { call, text: delta.text.clone() });
        }
        std::mem::take(&mut self.items)
    }

    /// Shows what the worker keeps of the answers in flight beyond what was sent. With redaction nothing is shown before it is whole.
    pub(crate) fn catch_up(&mut self, answers: &AnswerReader) -> Vec<Placed> {
        if !self.viewer.redacts() {
            let in_flight = self.attempts.iter().filter(|(path, _)| !self.is_hidden(path));
            let in_flight: Vec<_> = in_flight.map(|(path, attempt)| (path.clone(), *attempt)).collect();
            for (path, attempt) in in_flight {
                answers.read(&path, |partial| {
                    if partial.attempt == attempt {
                        self.continue_with(&path, partial);
                    }
                });
            }
        }
        std::mem::take(&mut self.items)
    }

    fn continue_with(&mut self, path: &Path, partial: &PartialAnswer) {
        let known = self.live.get(path).map_or((0, 0), |live| (live.generation, live.next));
        if known >= (partial.generation, partial.next) {
            return;
        }
        for piece in &partial.pieces {
            // Only what follows the text that was sent.
            let live = self.live.get(path).filter(|live| live.generation == partial.generation);
            let sent = live.and_then(|live| match piece.call {
                Some(call) => live.calls.get(&call).map(String::len),
                None => live.texts.get(&piece.part).map(|text| text.sent.len()),
            });
            let rest = piece.text.get(sent.unwrap_or_default()..).unwrap_or_default();
            if sent.is_none() || !rest.is_empty() {
                let Delta { attempt, generation, part, kind, call, ref tool, .. } = *piece;
                let (path, tool, n, text) = (path.clone(), tool.clone(), partial.next, rest.to_owned());
                self.piece(&Delta { path, attempt, generation, part, kind, call, tool, n, text });
            }
        }
        if let Some(live) = self.live.get_mut(path) {
            live.next = partial.next;
        }
    }

    /// Shows the next piece of an answer.
    fn piece(&mut self, delta: &Delta) {
        let path = &delta.path;
        if self.live.get(path).is_some_and(|live| live.generation < delta.generation) {
            self.discard_sent(path);
        }
        let base = self.answer_id(path, delta.attempt);
        let id = if delta.generation == 0 { base } else { format!("{base}~{}", delta.generation) };
        let live = self.live.entry(path.clone());
        let live = live.or_insert_with(|| LiveAnswer::new(id, delta.attempt, delta.generation));
        let answer = live.id.clone();
        let kind = match delta.kind {
            DeltaKind::Text => TextKind::Answer,
            DeltaKind::Reasoning => TextKind::Reasoning,
            DeltaKind::Arguments => return self.arguments(delta, answer),
            _ => return,
        };
        let id = format!("{answer}.{}", delta.part);
        let is_new = !live.texts.contains_key(&delta.part);
        let text =
            live.texts.entry(delta.part).or_insert_with(|| LiveText { id: id.clone(), kind, sent: String::new() });
        text.sent.push_str(&delta.text);
        if is_new {
            self.push(path, Item::TextStarted { id: id.clone(), answer, kind });
        }
        if !delta.text.is_empty() {
            self.push(path, Item::TextDelta { id, text: delta.text.clone() });
        }
    }

    fn arguments(&mut self, delta: &Delta, answer: String) {
        let Some((index, call)) = delta.call.and_then(|index| Some((index, call_of(&delta.path, index)?))) else {
            return;
        };
        let Some(live) = self.live.get_mut(&delta.path) else { return };
        let id = call.id_in(&self.run).to_string();
        let is_new = !live.calls.contains_key(&index);
        live.calls.entry(index).or_default().push_str(&delta.text);
        if is_new {
            let tool = delta.tool.clone().unwrap_or_default();
            self.push(&delta.path, Item::CallStarted { id: id.clone(), answer, tool });
        }
        if !delta.text.is_empty() {
            self.push(&delta.path, Item::CallArguments { id, text: delta.text.clone() });
        }
    }

    /// Begins a request to a model.
    pub(super) fn asked_model(&mut self, path: &Path, attempt: u32) {
        self.discard(path);
        self.attempts.insert(path.clone(), attempt);
    }

    /// Shows what is missing of an answer.
    pub(super) fn answered(&mut self, path: &Path, parts: &Arc<[Part]>) {
        let attempt = self.attempts.remove(path).unwrap_or_default();
        let is_void = self.live.get(path).is_some_and(|live| live.attempt != attempt || !live.fits(parts));
        if is_void {
            self.discard_sent(path);
        }
        // The id of an answer that was sent and discarded is used up.
        let base = self.answer_id(path, attempt);
        let fresh = if is_void { format!("{base}~") } else { base };
        let mut live = self.live.remove(path).unwrap_or_else(|| LiveAnswer::new(fresh, attempt, 0));
        for (index, part) in (0_u32..).zip(parts.iter()) {
            let id = format!("{}.{index}", live.id);
            if let Part::Citations { citations, .. } = part {
                self.push(path, Item::Sources { id, sources: citations.clone() });
                continue;
            }
            let Some((kind, text)) = text_of(part) else { continue };
            let sent = live.texts.remove(&index);
            if sent.is_none() {
                if text.trim().is_empty() {
                    continue;
                }
                self.push(path, Item::TextStarted { id: id.clone(), answer: live.id.clone(), kind });
            }
            let id = sent.as_ref().map_or(id, |live| live.id.clone());
            let rest = text.get(sent.map_or(0, |live| live.sent.len())..).unwrap_or_default();
            if !rest.is_empty() {
                self.push(path, Item::TextDelta { id: id.clone(), text: rest.to_owned() });
            }
            self.push(path, Item::TextEnded { id });
        }
        // Their events follow.
        if parts.iter().any(|part| matches!(part, Part::Call { .. })) {
            self.live.insert(path.clone(), live);
        } else if !live.calls.is_empty() {
            self.push(path, Item::Discarded { answer: live.id });
        }
    }

    /// Shows a call, as far as its arguments have not been sent.
    pub(super) fn called(&mut self, path: &Path, tool: &str, arguments: &Value) {
        self.calls.insert(path.clone());
        let Some((iteration, index)) = iteration_of(path) else { return };
        let (id, arguments) = (self.call_id(path), self.redacted(arguments));
        let live = self.live.get_mut(&iteration);
        let (answer, sent) = match live {
            Some(live) => (live.id.clone(), live.calls.remove(&index)),
            None => (self.answer_id(&iteration, 0), None),
        };
        if sent.is_none() {
            self.push(path, Item::CallStarted { id: id.clone(), answer, tool: tool.to_owned() });
            self.push(path, Item::CallArguments { id: id.clone(), text: arguments.to_string() });
        }
        self.push(path, Item::CallReady { id, arguments });
    }

    /// Forgets a request in flight, and what was sent of its answer.
    pub(super) fn discard(&mut self, path: &Path) {
        self.attempts.remove(path);
        self.discard_sent(path);
    }

    /// Forgets the requests in flight within a path, and what was sent of their answers.
    pub(super) fn discard_within(&mut self, path: &Path) {
        self.attempts.retain(|known, _| !known.is_within(path));
        let mut lost: Vec<_> = self.live.keys().filter(|known| known.is_within(path)).cloned().collect();
        lost.sort();
        lost.iter().for_each(|path| self.discard_sent(path));
    }

    fn discard_sent(&mut self, path: &Path) {
        if let Some(live) = self.live.remove(path)
            && !(live.texts.is_empty() && live.calls.is_empty())
        {
            self.push(path, Item::Discarded { answer: live.id });
        }
    }
}

/// Returns the path of a call of an answer.
fn call_of(iteration: &Path, index: u32) -> Option<Path> {
    match iteration.last()? {
        Segment::Iteration(number) => Some(iteration.parent()?.call(number, index)),
        Segment::Stage(_) | Segment::Call(..) | Segment::Question(..) => None,
    }
}

/// Returns the iteration of a call, and the call's index in it.
fn iteration_of(call: &Path) -> Option<(Path, u32)> {
    match call.last()? {
        Segment::Call(iteration, index) => Some((call.parent()?.iteration(iteration), index)),
        Segment::Stage(_) | Segment::Iteration(_) | Segment::Question(..) => None,
    }
}
