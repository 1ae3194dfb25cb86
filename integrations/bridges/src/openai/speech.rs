//! What a run says in one turn: the texts of the dialogue with the person, then how the turn ends.

use std::collections::HashSet;
use std::sync::Arc;

use positronic_core::machine::pending;
use positronic_core::record::Usage;

use crate::caller_result::{CallerResult, as_text};
use crate::cut_off::CutOff;
use crate::leg::{Encoder, LegEnd};
use crate::open_questions::{paused, waiting};
use crate::projection::{Item, Placed, Projection, TextKind};

/// What a run says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Speech {
    Text { id: String, text: String },
    TextEnded { id: String },
    Over { end: TurnEnd, usage: Usage },
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TurnEnd {
    Completed,
    /// The run has completed, and a limit has cut off a loop of it.
    CutOff,
    /// The run waits for the results of these calls of the caller's own tools.
    Called(Vec<AskedCall>),
    /// The run waits; the text says for what, and where it is decided.
    Waiting(String),
    Failed(String),
    Cancelled,
    /// The turn cannot be followed; the run may continue.
    Broken(String),
}

/// A call of one of the caller's own tools.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AskedCall {
    pub(super) id: String,
    pub(super) tool: String,
    /// The arguments, as JSON.
    pub(super) arguments: String,
}

/// Returns the calls of the caller's own tools that wait for their results.
pub(super) fn asked_calls(projection: &Projection) -> Vec<AskedCall> {
    let open = pending(projection.state()).into_iter().filter(|item| item.kind.is_for_caller());
    let asked = open.map(|item| AskedCall {
        id: projection.call_id(&item.call),
        tool: item.tool,
        arguments: projection.redacted(&item.arguments).to_string(),
    });
    asked.collect()
}

/// Encodes a leg.
#[derive(Debug)]
pub(super) struct SpeechEncoder {
    rule: CallerResult,
    /// The program in commands that clients are shown.
    program: Arc<str>,
    texts: HashSet<String>,
    /// The text whose piece came last.
    last: Option<String>,
    /// The usage before the turn.
    before: Usage,
    cut_off: CutOff,
}

impl SpeechEncoder {
    pub(super) fn new(rule: CallerResult, program: Arc<str>) -> Self {
        Self { rule, program, texts: HashSet::new(), last: None, before: Usage::default(), cut_off: CutOff::default() }
    }

    /// Returns a piece of a text. A text after another one begins with an empty line, since clients put all texts of an answer together.
    fn piece(&mut self, id: String, text: &str) -> Speech {
        let separator = match &self.last {
            Some(last) if *last != id => "\n\n",
            _ => "",
        };
        self.last = Some(id.clone());
        Speech::Text { id, text: format!("{separator}{text}") }
    }

    fn usage(&self, projection: &Projection) -> Usage {
        let now = usage_of(projection);
        Usage {
            input: now.input.saturating_sub(self.before.input),
            output: now.output.saturating_sub(self.before.output),
            cached: now.cached.saturating_sub(self.before.cached),
            cache_write: now.cache_write.saturating_sub(self.before.cache_write),
            cache_write_1h: now.cache_write_1h.saturating_sub(self.before.cache_write_1h),
            reasoning: now.reasoning.saturating_sub(self.before.reasoning),
        }
    }
}

fn usage_of(projection: &Projection) -> Usage {
    projection.state().root.as_ref().map(|root| root.usage).unwrap_or_default()
}

impl Encoder for SpeechEncoder {
    type Sent = Speech;

    fn items(&mut self, items: Vec<Placed>) -> Vec<Speech> {
        let mut said = Vec::new();
        for Placed { in_dialogue, item, .. } in items {
            self.cut_off.item(&item);
            match item {
                Item::TextStarted { id, kind: TextKind::Answer, .. } if in_dialogue => {
                    self.texts.insert(id);
                }
                Item::TextDelta { id, text } if self.texts.contains(&id) => {
                    said.push(self.piece(id, &text));
                }
                Item::TextEnded { id } if self.texts.remove(&id) => said.push(Speech::TextEnded { id }),
                // What was sent cannot be taken back; the text that replaces it is another one.
                Item::Discarded { .. } if in_dialogue => {
                    said.extend(self.texts.drain().map(|id| Speech::TextEnded { id }));
                }
                // The API has texts and calls alone, and the calls of the caller's tools come at the end.
                Item::BrainStarted { .. }
                | Item::BrainEnded { .. }
                | Item::StageStarted { .. }
                | Item::StageEnded { .. }
                | Item::IterationStarted
                | Item::TextStarted { .. }
                | Item::TextDelta { .. }
                | Item::TextEnded { .. }
                | Item::Discarded { .. }
                | Item::Sources { .. }
                | Item::CallStarted { .. }
                | Item::CallArguments { .. }
                | Item::CallReady { .. }
                | Item::CallEdited { .. }
                | Item::CallEnded { .. }
                | Item::ApprovalRequested { .. }
                | Item::ApprovalClosed { .. }
                | Item::WaitStarted { .. }
                | Item::WaitEnded { .. }
                | Item::Output { .. }
                | Item::Progress { .. }
                | Item::UserMessage { .. }
                | Item::StateChanged { .. }
                | Item::Notice { .. } => {}
            }
        }
        said
    }

    fn begin(&mut self, projection: &Projection, _: bool) -> Vec<Speech> {
        self.last = None;
        self.before = usage_of(projection);
        Vec::new()
    }

    fn end(&mut self, projection: &Projection, end: LegEnd) -> Vec<Speech> {
        let mut said: Vec<_> = self.texts.drain().map(|id| Speech::TextEnded { id }).collect();
        let end = match end {
            LegEnd::Completed { result, is_state } => {
                let shown = self.rule.shown(projection.viewer(), &result, is_state);
                if let Some(result) = shown.filter(|_| self.last.is_none()) {
                    let id = format!("{}:result", projection.run());
                    said.push(Speech::Text { id: id.clone(), text: as_text(&result) });
                    said.push(Speech::TextEnded { id });
                }
                if self.cut_off.loops().is_empty() { TurnEnd::Completed } else { TurnEnd::CutOff }
            }
            LegEnd::Waiting(questions) if questions.iter().any(|question| question.pending.kind.is_for_caller()) => {
                TurnEnd::Called(asked_calls(projection))
            }
            LegEnd::Waiting(questions) => {
                TurnEnd::Waiting(waiting(projection.viewer(), &self.program, projection.run(), &questions))
            }
            LegEnd::Paused => TurnEnd::Waiting(paused(&self.program, projection.run())),
            LegEnd::Failed(failure) => TurnEnd::Failed(failure.message),
            LegEnd::Cancelled => TurnEnd::Cancelled,
            LegEnd::Broken(problem) => TurnEnd::Broken(problem.message()),
        };
        said.push(Speech::Over { end, usage: self.usage(projection) });
        said
    }
}
