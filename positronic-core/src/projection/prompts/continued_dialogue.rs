//! Dialogues that another loop continues: what that loop reads of them, and where they stand in a conversation after they were handed back.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::record::Record;
use crate::projection::earlier_turns::{History, Past, Turn, UnreadMessage};
use crate::projection::messages::{messages, opening, said};
use crate::projection::normalize_messages::dialogue;
use crate::record::{
    Assistant, ContinuedLoop, Dialogue, Message, Output, OutputKind, Path, Prompt, Segment, UserMessage,
};

/// A dialogue that another loop has taken over or continues.
pub(super) struct ContinuedDialogue {
    /// The place of the answer that handed it over, or of the first output that no iteration has sent.
    pub(super) from: usize,
    /// How many messages of people from there on the other loop has begun with.
    pub(super) unread: u32,
    /// What was said until it was handed back, if it was.
    pub(super) returned: Option<Vec<Past>>,
}

impl Record {
    /// Returns its first outputs as parts of a conversation, with its opening message, the dialogues that were handed back to it, and last what
    /// no loop has read. `engine` says whether what the engine has said to the model is part of it. A compacted loop has only its compacted messages, and the dialogues that were handed back after them.
    pub(super) fn parts(&self, outputs: usize, continued: Vec<ContinuedDialogue>, engine: bool) -> Vec<Past> {
        let taken = self.taken(&continued);
        let unread: BTreeSet<usize> = self.left(&taken).filter(|place| *place < outputs).collect();
        let sent = |range: Range<usize>| -> Arc<[Output]> {
            let places = range.filter(|place| !taken.contains(place) && !unread.contains(place));
            let outputs = places.filter_map(|place| self.prompt.output.get(place));
            outputs.filter(|output| engine || !is_of_engine(&output.kind)).cloned().collect()
        };
        let (mut parts, mut waiting) = (Vec::new(), Vec::new());
        if self.compacted {
            let fresh = messages(&sent(self.projected..outputs));
            let messages = dialogue(self.transcript.messages().into_iter().chain(fresh)).messages();
            let (standing, outputs) = (self.standing.clone(), sent(self.from..outputs));
            parts.push(Past::Compacted { messages, standing, outputs });
            parts.extend(continued.into_iter().filter_map(|dialogue| dialogue.returned).flatten());
        } else {
            match &self.prompt.input {
                Some(text) if !self.has_answer() => waiting.push(UnreadMessage {
                    text: text.clone(),
                    files: self.prompt.files.clone(),
                    is_replaced: self.replaced.contains(&0),
                }),
                _ => parts.extend(opening(&self.prompt).map(|opening| Past::Said(vec![opening]))),
            }
            let mut begin = self.from;
            for ContinuedDialogue { from, returned, .. } in continued {
                let Some(returned) = returned.filter(|_| from < outputs) else { continue };
                parts.push(Past::Done(sent(begin..from)));
                parts.extend(returned);
                begin = from;
            }
            parts.push(Past::Done(sent(begin..outputs)));
        }
        waiting.extend(unread.into_iter().filter_map(|place| {
            let UserMessage { text, files, .. } = self.message_at(place)?;
            Some(UnreadMessage { text, files, is_replaced: self.replaced.contains(&self.number_at(place)) })
        }));
        if !waiting.is_empty() {
            parts.push(Past::Unread(waiting));
        }
        parts
    }

    /// Returns the places of the messages of people with which other loops have begun.
    fn taken(&self, continued: &[ContinuedDialogue]) -> BTreeSet<usize> {
        let mut taken = BTreeSet::new();
        for ContinuedDialogue { from, unread, .. } in continued {
            let left = self.said_from(*from).filter(|place| !taken.contains(place));
            let begun_with: Vec<usize> = left.take(as_len(*unread)).collect();
            taken.extend(begun_with);
        }
        taken
    }

    /// Returns the places of the messages of people that no iteration has sent, and with which no other loop has begun.
    fn left(&self, taken: &BTreeSet<usize>) -> impl Iterator<Item = usize> {
        self.said_from(self.projected).filter(|place| !taken.contains(place))
    }

    /// Returns the last message of a person that an iteration has sent before an output, or that of the loop before it.
    fn last_of_person(&self, outputs: usize) -> Option<Message> {
        let last = self.said_from(0).take_while(|place| *place < outputs.min(self.projected)).last();
        let own =
            last.and_then(|place| self.message_at(place)).map(|UserMessage { text, files, .. }| said(&text, &files));
        let before = || self.history.iter().rfind(|message| matches!(message, Message::User { .. })).cloned();
        own.or_else(|| opening(&self.prompt)).or_else(before)
    }

    /// Returns the places of the messages of people from an output on.
    fn said_from(&self, place: usize) -> impl Iterator<Item = usize> {
        let later = self.prompt.output.iter().enumerate().skip(place);
        later.filter(|(_, output)| matches!(output.kind, OutputKind::Message { engine: false, .. })).map(|(at, _)| at)
    }

    fn message_at(&self, place: usize) -> Option<UserMessage> {
        match &self.prompt.output.get(place)?.kind {
            OutputKind::Message { text, files, .. } => {
                Some(UserMessage::new(text.as_str()).files(files.iter().cloned()))
            }
            _ => None,
        }
    }

    /// Returns the number of a message among those of people, the opening one included.
    fn number_at(&self, place: usize) -> usize {
        usize::from(self.prompt.input.is_some()) + self.said_from(0).take_while(|earlier| *earlier < place).count()
    }

    fn has_answer(&self) -> bool {
        self.prompt.output.iter().any(|output| output.kind.parts().is_some())
    }

    /// Returns the messages of people after the opening that no iteration has sent, and with which no other loop has begun.
    pub(super) fn unread(&self, continued: &[ContinuedDialogue]) -> Vec<UserMessage> {
        let taken = self.taken(continued);
        self.left(&taken).filter_map(|place| self.message_at(place)).collect()
    }

    /// Returns whether it took the dialogue of another loop over.
    pub(super) fn takes_over(&self, other: &Path) -> bool {
        self.continues.as_ref().is_some_and(|continued| continued.path == *other) && self.prompt.path.is_within(other)
    }

    /// Returns the conversation before a loop that continues this one: without the answer whose call runs it.
    pub(super) fn continued_by(
        &self,
        path: &Path,
        by: &ContinuedLoop,
        mut continued: Vec<ContinuedDialogue>,
    ) -> History {
        let outputs = handing_answer(&self.prompt, path).unwrap_or(self.prompt.output.len());
        continued.push(ContinuedDialogue { from: self.projected, unread: by.unread, returned: None });
        let history = self.history.then(None, Turn::new(self.parts(outputs, continued, by.dialogue != Dialogue::Said)));
        match by.dialogue {
            Dialogue::Whole => history,
            Dialogue::Last(count) => History::from(last(&history, count)),
            Dialogue::Said => History::from(texts(&history)),
            Dialogue::Message => History::from(Vec::from_iter(self.last_of_person(outputs))),
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

const fn is_of_engine(kind: &OutputKind) -> bool {
    matches!(kind, OutputKind::Message { engine: true, .. })
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
fn texts(messages: &[Message]) -> Vec<Message> {
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
