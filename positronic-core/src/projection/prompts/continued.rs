//! Dialogues that another loop continues: what that loop reads of them, and where they stand in a conversation after they were handed back.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::record::Record;
use crate::projection::history::{History, Past, Turn};
use crate::projection::messages::opening;
use crate::record::{Assistant, Dialogue, Message, Output, OutputKind, Path, Prompt, Segment, UserMessage};

/// A dialogue that a loop has handed over.
pub(super) struct HandedDialogue {
    /// The place of the answer that handed it over.
    pub(super) answer: usize,
    /// How many messages after the answer the other loop has read.
    pub(super) unread: u32,
    /// What was said until it was handed back, if it was.
    pub(super) returned: Option<Vec<Past>>,
}

impl Record {
    /// Returns its first outputs as parts of a conversation, with its opening message and the dialogues that it has handed over. A compacted
    /// loop has only its compacted messages, and the dialogues that were handed back after them.
    pub(super) fn parts(&self, outputs: usize, handed: Vec<HandedDialogue>) -> Vec<Past> {
        let is_all = outputs == self.prompt.output.len();
        if self.compacted {
            let outputs: Arc<[Output]> = self.prompt.output.get(self.from..outputs).unwrap_or_default().into();
            let messages = if is_all { self.next_messages() } else { self.transcript.messages() };
            let compacted = Past::Compacted { messages, standing: self.standing.clone(), outputs };
            let returned = handed.into_iter().filter_map(|dialogue| dialogue.returned).flatten();
            return std::iter::once(compacted).chain(returned).collect();
        }
        let read = handed.iter().flat_map(|dialogue| self.after(dialogue.answer).take(as_len(dialogue.unread)));
        let read: BTreeSet<usize> = read.collect();
        let done = |range: Range<usize>| {
            let places = range.filter(|place| !read.contains(place));
            Past::Done(places.filter_map(|place| self.prompt.output.get(place).cloned()).collect())
        };
        let mut parts: Vec<_> = opening(&self.prompt).map(|opening| Past::Said(vec![opening])).into_iter().collect();
        let mut begin = self.from;
        for HandedDialogue { answer, returned, .. } in handed.into_iter().filter(|dialogue| dialogue.answer < outputs) {
            let Some(returned) = returned else { continue };
            parts.push(done(begin..answer));
            parts.extend(returned);
            begin = answer;
        }
        parts.push(done(begin..outputs));
        parts
    }

    /// Returns the places of the messages of people after an output.
    fn after(&self, place: usize) -> impl Iterator<Item = usize> {
        let later = self.prompt.output.iter().enumerate().skip(place);
        later.filter(|(_, output)| matches!(output.kind, OutputKind::Message { engine: false, .. })).map(|(at, _)| at)
    }

    /// Returns the messages of people since the answer whose call runs another loop.
    pub(super) fn unread(&self, inner: &Path) -> Vec<UserMessage> {
        let Some(answer) = handing_answer(&self.prompt, inner) else { return Vec::new() };
        let unread = self.after(answer).filter_map(|place| match &self.prompt.output.get(place)?.kind {
            OutputKind::Message { text, files, .. } => {
                Some(UserMessage { text: text.clone(), id: None, files: files.clone() })
            }
            _ => None,
        });
        unread.collect()
    }

    /// Returns whether it took the dialogue of another loop over.
    pub(super) fn takes_over(&self, other: &Path) -> bool {
        self.continues.as_ref().is_some_and(|continued| continued.path == *other) && self.prompt.path.is_within(other)
    }

    /// Returns the conversation before a loop that continues this one: without the answer whose call runs it.
    pub(super) fn continued_by(&self, path: &Path, part: Dialogue, handed: Vec<HandedDialogue>) -> History {
        let outputs = handing_answer(&self.prompt, path).unwrap_or(self.prompt.output.len());
        let history = self.history.then(None, Turn::new(self.parts(outputs, handed)));
        match part {
            Dialogue::Whole => history,
            Dialogue::Last(count) => History::from(last(&history, count)),
            Dialogue::Said => History::from(said(&history)),
        }
    }
}

/// Returns the position of the answer with the call that runs a loop.
pub(super) fn handing_answer(prompt: &Prompt, inner: &Path) -> Option<usize> {
    let call = std::iter::successors(Some(inner.clone()), Path::parent)
        .find(|path| path.parent().as_ref() == Some(&prompt.path))?;
    let Some(Segment::Call(iteration, _)) = call.last() else { return None };
    prompt.output.iter().position(|output| match &output.kind {
        OutputKind::Text { iteration: of, .. } => *of == iteration,
        OutputKind::Tool(tool) => matches!(tool.path.last(), Some(Segment::Call(of, _)) if of == iteration),
        _ => false,
    })
}

fn as_len(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns the last messages, from a call on if its result is one of them.
fn last(messages: &[Message], count: u32) -> Vec<Message> {
    let mut begin = messages.len().saturating_sub(as_len(count));
    while begin > 0 && matches!(messages.get(begin), Some(Message::Tool { .. })) {
        begin -= 1;
    }
    messages.get(begin..).unwrap_or_default().to_vec()
}

/// Returns the texts and files up to the last message of a person.
fn said(messages: &[Message]) -> Vec<Message> {
    let end = messages.iter().rposition(|message| matches!(message, Message::User { .. })).map_or(0, |last| last + 1);
    let said = messages.iter().take(end).filter_map(|message| match message {
        Message::User { .. } => Some(message.clone()),
        Message::Assistant { parts, by } => {
            let is_said = |part: &&Assistant| matches!(part, Assistant::Text { .. } | Assistant::File { .. });
            Some(Message::Assistant { parts: parts.iter().filter(is_said).cloned().collect(), by: by.clone() })
        }
        Message::Tool { .. } => None,
    });
    said.collect()
}
