//! The conversation before a run, for any model.
//!
//! A history is a list of turns, one for each earlier run. Histories of one conversation share their turns and the
//! dialogue made from them, so a further turn costs the same at any length.
//!
//! The turns are grouped in blocks, of which a store keeps the last one for each run: the turn of the run itself, and
//! every 16th time the 16 turns up to it, every 256th time the 256 turns up to it. A reader that begins at the last run
//! therefore reads at most 15 blocks of a turn, 15 blocks of 16 turns, and one block for each 256 turns.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::messages::{messages, said};
use super::normalize_messages::extend;
use crate::record::encoding::document::encoded_len;
use crate::record::encoding::skip::is_default;
use crate::record::{FileRef, Message, Output, ReplacedInput, RunId, Transcript, UserMessage};

/// How many blocks of a level become one of the next level.
const WIDTH: usize = 16;
const LEVELS: u8 = 2;

/// The size of a merged block in bytes, at most.
const LARGEST: usize = 4 << 20;

/// The conversation before a run, as messages for models without a projection of their own.
///
/// For models with one it holds the records of the earlier loops, so that the model asked now creates their messages.
/// The result of a compaction stays unchanged.
#[derive(Debug, Clone, Default)]
pub struct History {
    blocks: Arc<[TurnBlock]>,
    /// Its messages as they are sent.
    dialogue: Transcript,
    messages: Arc<OnceLock<Box<[Message]>>>,
}

/// Consecutive turns that are stored together.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TurnBlock {
    level: u8,
    /// The run before the first turn; `None` if the conversation begins here, or if a summary replaces what was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<RunId>,
    turns: Arc<[Arc<Turn>]>,
    #[serde(skip)]
    is_stored: bool,
}

/// What a run adds to its conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Turn {
    parts: Vec<Past>,
    /// The length of its encoding.
    #[serde(skip)]
    bytes: OnceLock<usize>,
}

/// A part of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Past {
    /// Messages that are the same for every model.
    Said(Vec<Message>),
    /// Consecutive outputs of one loop.
    Done(Arc<[Output]>),
    /// Messages of people that no loop has read. The guards of the next run's first loop check them.
    Unread(Vec<UnreadMessage>),
    /// A compaction, which replaces everything before it.
    Compacted {
        /// The messages for a model without a projection of its own.
        messages: Vec<Message>,
        /// The messages before the outputs for a model with one.
        standing: Vec<Message>,
        /// The outputs that are kept.
        outputs: Arc<[Output]>,
    },
}

/// A message of a person that no loop has read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct UnreadMessage {
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<FileRef>,
    /// Whether it is what a guard has put in the place of a message.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) is_replaced: bool,
}

impl Past {
    fn messages(&self) -> Vec<Message> {
        match self {
            Self::Said(messages) | Self::Compacted { messages, .. } => messages.clone(),
            Self::Done(outputs) => messages(outputs),
            Self::Unread(unread) => unread.iter().map(|UnreadMessage { text, files, .. }| said(text, files)).collect(),
        }
    }
}

impl Turn {
    pub(super) fn new(mut parts: Vec<Past>) -> Self {
        let last = parts.iter().rposition(|part| matches!(part, Past::Compacted { .. }));
        parts.drain(..last.unwrap_or(0));
        Self { parts, bytes: OnceLock::new() }
    }

    /// Returns whether it replaces everything before it.
    fn replaces(&self) -> bool {
        matches!(self.parts.first(), Some(Past::Compacted { .. }))
    }

    /// Returns whether a loop has read it, at least in part.
    fn is_read(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Past::Said(messages) => !messages.is_empty(),
            Past::Done(outputs) => !outputs.is_empty(),
            Past::Unread(_) => false,
            Past::Compacted { .. } => true,
        })
    }

    /// Lists its messages that no loop has read.
    fn unread(&self) -> impl Iterator<Item = &UnreadMessage> {
        let unread = self.parts.iter().filter_map(|part| match part {
            Past::Unread(unread) => Some(unread),
            Past::Said(_) | Past::Done(_) | Past::Compacted { .. } => None,
        });
        unread.flatten()
    }

    /// Returns it with another message in the place of an unread one.
    fn replaced(&self, number: usize, ReplacedInput { text, files, .. }: &ReplacedInput) -> Self {
        let mut parts = self.parts.clone();
        let unread = parts.iter_mut().filter_map(|part| match part {
            Past::Unread(unread) => Some(unread),
            Past::Said(_) | Past::Done(_) | Past::Compacted { .. } => None,
        });
        if let Some(message) = unread.flatten().nth(number) {
            *message = UnreadMessage { text: text.clone(), files: files.clone(), is_replaced: true };
        }
        Self { parts, bytes: OnceLock::new() }
    }

    fn messages(&self) -> impl Iterator<Item = Message> {
        self.parts.iter().flat_map(Past::messages)
    }

    fn bytes(&self) -> usize {
        *self.bytes.get_or_init(|| encoded_len(self))
    }
}

impl TurnBlock {
    fn bytes(&self) -> usize {
        self.turns.iter().fold(0, |bytes, turn| bytes.saturating_add(turn.bytes()))
    }

    /// Returns the run before its first turn.
    pub(crate) const fn before(&self) -> Option<&RunId> {
        self.before.as_ref()
    }
}

impl History {
    /// Adds the turn of a run. `before` is the run before it.
    pub(super) fn then(&self, before: Option<RunId>, turn: Turn) -> Self {
        let before = before.filter(|_| !turn.replaces());
        let turns = [Arc::new(turn)].into();
        let mut blocks = self.added(TurnBlock { level: 0, before, turns, is_stored: false });
        merge(&mut blocks.0);
        Self { blocks: blocks.0.into(), dialogue: blocks.1, messages: Arc::default() }
    }

    /// Adds a block that was read from a store.
    pub(crate) fn with(&self, block: TurnBlock) -> Self {
        let (blocks, dialogue) = self.added(TurnBlock { is_stored: true, ..block });
        Self { blocks: blocks.into(), dialogue, messages: Arc::default() }
    }

    fn added(&self, block: TurnBlock) -> (Vec<TurnBlock>, Transcript) {
        // Only the first turn can: a block ends the ones before it then.
        let replaces = block.turns.first().is_some_and(|turn| turn.replaces());
        let (mut blocks, mut dialogue) = match replaces {
            true => (Vec::new(), Transcript::default()),
            false => (self.blocks.to_vec(), self.dialogue.clone()),
        };
        extend(&mut dialogue, block.turns.iter().flat_map(|turn| turn.messages()));
        blocks.push(block);
        (blocks, dialogue)
    }

    /// Returns the messages of people that no loop has read and no guard has replaced, with their numbers among the unread ones: those of
    /// the last turn that a loop has read in part, and of the turns after it.
    pub(super) fn unread(&self) -> Vec<(u32, UserMessage)> {
        let numbered = (0..).zip(self.unread_turns().into_iter().flat_map(|(_, _, turn)| turn.unread()));
        let unread = numbered.filter(|(_, message)| !message.is_replaced);
        unread
            .map(|(number, UnreadMessage { text, files, .. })| {
                (number, UserMessage::new(text.as_str()).files(files.iter().cloned()))
            })
            .collect()
    }

    /// Returns the last turn that a loop has read in part and the turns after it, each with its block's place and its place there.
    fn unread_turns(&self) -> Vec<(usize, usize, &Turn)> {
        let mut found = Vec::new();
        let blocks = self.blocks.iter().enumerate().rev();
        for (block, place, turn) in blocks
            .flat_map(|(block, all)| all.turns.iter().enumerate().rev().map(move |(place, turn)| (block, place, turn)))
        {
            found.push((block, place, &**turn));
            if turn.is_read() {
                break;
            }
        }
        found.reverse();
        found
    }

    /// Returns it with what has come in the place of an unread message.
    pub(super) fn replaced(&self, input: &ReplacedInput) -> Self {
        let mut number = usize::try_from(input.message).unwrap_or(usize::MAX);
        let mut blocks = self.blocks.to_vec();
        for (block, place, turn) in self.unread_turns() {
            let count = turn.unread().count();
            let Some(after) = number.checked_sub(count) else {
                if let Some(block) = blocks.get_mut(block) {
                    let mut turns = block.turns.to_vec();
                    if let Some(known) = turns.get_mut(place) {
                        *known = Arc::new(turn.replaced(number, input));
                    }
                    // The block of the next turn is stored with it.
                    (block.turns, block.is_stored) = (turns.into(), false);
                }
                break;
            };
            number = after;
        }
        let mut dialogue = Transcript::default();
        extend(&mut dialogue, blocks.iter().flat_map(|block| block.turns.iter()).flat_map(|turn| turn.messages()));
        Self { blocks: blocks.into(), dialogue, messages: Arc::default() }
    }

    /// Returns the last block, which the store keeps for the last run.
    pub(crate) fn last_block(&self) -> Option<&TurnBlock> {
        self.blocks.last()
    }

    /// Marks the last block as stored.
    #[must_use]
    pub(crate) fn stored(mut self) -> Self {
        if let Some(last) = Arc::make_mut(&mut self.blocks).last_mut() {
            last.is_stored = true;
        }
        self
    }

    /// Returns its messages for a model with a projection of its own; `None` if the model has none.
    #[must_use]
    pub fn messages_by(&self, mut project: impl FnMut(&[Output]) -> Option<Vec<Message>>) -> Option<Vec<Message>> {
        let mut messages = Vec::with_capacity(self.dialogue.len());
        for part in self.turns().flat_map(|turn| &turn.parts) {
            match part {
                Past::Said(_) | Past::Unread(_) => messages.extend(part.messages()),
                Past::Done(outputs) => messages.extend(project(outputs)?),
                Past::Compacted { standing, outputs, .. } => {
                    messages.extend(standing.iter().cloned());
                    messages.extend(project(outputs)?);
                }
            }
        }
        Some(messages)
    }

    /// Returns its messages as they are sent. The runs of a conversation share them, with their encodings.
    pub(super) fn dialogue(&self) -> Transcript {
        self.dialogue.clone()
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.blocks.iter().flat_map(|block| &*block.turns).map(|turn| &**turn)
    }
}

/// Merges the last blocks where enough of them have the same level, and blocks that are not stored with the last one.
fn merge(blocks: &mut Vec<TurnBlock>) {
    if let Some(first) = blocks.iter().position(|block| !block.is_stored)
        && first + 1 < blocks.len()
    {
        merge_from(blocks, fitting(blocks, first));
    }
    while let Some(level) = blocks.last().map(|last| last.level).filter(|level| *level < LEVELS) {
        let first = blocks.len().saturating_sub(WIDTH);
        let alike = blocks.iter().skip(first).all(|block| block.level == level);
        if blocks.len() < WIDTH || !alike || fitting(blocks, first) > first {
            return;
        }
        merge_from(blocks, first);
    }
}

/// Returns the first block from `first` on that can be merged with all after it.
fn fitting(blocks: &[TurnBlock], first: usize) -> usize {
    let mut bytes = 0_usize;
    let after = blocks.iter().enumerate().skip(first).rev();
    let fits = after.take_while(|(_, block)| {
        bytes = bytes.saturating_add(block.bytes());
        bytes <= LARGEST
    });
    fits.last().map_or(blocks.len(), |(index, _)| index)
}

/// Merges all blocks from `first` on, if there are several.
fn merge_from(blocks: &mut Vec<TurnBlock>, first: usize) {
    if blocks.len() - first.min(blocks.len()) < 2 {
        return;
    }
    let merged: Vec<_> = blocks.drain(first..).collect();
    let turns: Arc<[_]> = merged.iter().flat_map(|block| block.turns.iter().cloned()).collect();
    let level = match turns.len() {
        ..WIDTH => 0,
        WIDTH..WIDE => 1,
        _ => LEVELS,
    };
    let before = merged.into_iter().next().and_then(|block| block.before);
    blocks.push(TurnBlock { level, before, turns, is_stored: false });
}

/// The number of turns of a block of the last level.
const WIDE: usize = WIDTH * WIDTH;

impl Deref for History {
    type Target = [Message];

    fn deref(&self) -> &Self::Target {
        self.messages.get_or_init(|| self.turns().flat_map(Turn::messages).collect())
    }
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> Self {
        Self::default().then(None, Turn::new(vec![Past::Said(messages)]))
    }
}

#[cfg(test)]
mod tests;
