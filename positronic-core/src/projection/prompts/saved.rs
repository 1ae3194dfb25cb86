//! Saved prompts: what a resume needs of a long run's prompts, in parts.
//!
//! A part holds what has changed since the part before it, so that all parts of a run together are about as large as its
//! outputs. An output is saved once, when it can no longer change: when a later iteration has begun or the loop has ended.
//! The messages of a loop follow from its outputs, except after a compaction.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::{History, Prompts};
use crate::projection::messages::messages;
use crate::projection::normalize_messages::extend;
use crate::record::{
    BatchPolicy, ContinuedLoop, Message, Output, Path, Prompt, PromptState, ReplacedInput, RunId, Seq, Transcript,
};

/// The changes of a run's prompts between two events.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PromptsPart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<RunId>,
    /// What guards have replaced in the history so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<ReplacedInput>,
    /// The brains of earlier parts that have ended and whose loops are not needed any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<Path>,
    records: Vec<RecordPart>,
}

/// The changes of a loop's record.
#[derive(Debug, Serialize, Deserialize)]
struct RecordPart {
    /// The prompt, with the outputs from `begin` on.
    prompt: Prompt,
    begin: usize,
    projected: usize,
    asking: bool,
    /// The messages that are sent after a compaction, and those in `standing` and the output `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compacted: Option<(Vec<Message>, Vec<Message>, usize)>,
    policy: BatchPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continues: Option<ContinuedLoop>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    waiting_below: BTreeMap<Path, PromptState>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    replaced: BTreeSet<usize>,
}

impl Prompts {
    /// Returns the event up to which parts are saved.
    pub(crate) const fn saved(&self) -> Seq {
        self.saved
    }

    /// Returns what has changed since the last part, and the event at which that ended. `next` is the next event.
    pub(crate) fn part(&mut self, next: Seq) -> (Seq, PromptsPart) {
        let records = self.records.values_mut().filter(|record| !record.is_saved).map(Record::part).collect();
        let part = PromptsPart {
            user_id: self.user_id.clone(),
            after: self.after.clone(),
            replaced: self.replaced.clone(),
            dropped: std::mem::take(&mut self.dropped),
            records,
        };
        (std::mem::replace(&mut self.saved, next), part)
    }

    /// Forgets that parts were saved, so that the next one contains everything.
    pub(crate) fn forget_parts(&mut self) {
        self.saved = Seq(0);
        self.dropped.clear();
        for record in self.records.values_mut() {
            (record.saved, record.is_saved, record.is_in_part) = (0, false, false);
        }
    }

    /// Restores the prompts of a run from its parts, the last of which ends before the event `next`. Returns `None` if
    /// they do not fit together.
    pub(crate) fn restored(history: History, parts: impl IntoIterator<Item = PromptsPart>, next: Seq) -> Option<Self> {
        let mut prompts = Self::after(history);
        for part in parts {
            (prompts.user_id, prompts.after) = (part.user_id, part.after);
            // They were replaced before the first iteration.
            for input in part.replaced.into_iter().skip(prompts.replaced.len()) {
                prompts.history = prompts.history.replaced(&input);
                prompts.replaced.push(input);
            }
            prompts.records.retain(|path, _| !part.dropped.iter().any(|brain| path.is_within(brain)));
            for record in part.records {
                let path = record.prompt.path.clone();
                let known = prompts.records.get_mut(&path).map(|known| std::mem::take(&mut known.prompt.output));
                let history = prompts.history_of(&path, record.continues.as_ref());
                let restored = record.restored(history, known.unwrap_or_default())?;
                prompts.records.insert(path, restored);
            }
        }
        prompts.records.values_mut().for_each(Record::complete);
        prompts.saved = next;
        Some(prompts)
    }
}

impl Record {
    /// Returns the number of its first outputs that do not change any more.
    fn settled_outputs(&self) -> usize {
        if self.prompt.outcome.is_some() { self.prompt.output.len() } else { self.projected }
    }

    fn part(&mut self) -> RecordPart {
        let outputs = std::mem::take(&mut self.prompt.output);
        let mut prompt = self.prompt.clone();
        prompt.output = outputs.get(self.saved..).unwrap_or_default().to_vec();
        self.prompt.output = outputs;
        let compacted = self.compacted.then(|| (self.transcript.messages(), self.standing.clone(), self.from));
        let part = RecordPart {
            prompt,
            begin: self.saved,
            projected: self.projected,
            asking: self.asking,
            compacted,
            policy: self.policy,
            continues: self.continues.clone(),
            waiting_below: self.waiting_below.clone(),
            replaced: self.replaced.clone(),
        };
        self.saved_now();
        part
    }

    fn saved_now(&mut self) {
        (self.saved, self.is_saved, self.is_in_part) = (self.settled_outputs(), self.prompt.outcome.is_some(), true);
    }

    /// Sets what a part does not contain.
    fn complete(&mut self) {
        if !self.compacted {
            self.transcript = self.opened();
            let sent = self.prompt.output.get(..self.projected).unwrap_or_default();
            extend(&mut self.transcript, messages(sent));
        }
        self.saved_now();
    }
}

impl RecordPart {
    /// Restores a record from the outputs of the parts before this one.
    fn restored(self, history: History, mut output: Vec<Output>) -> Option<Record> {
        let Self { mut prompt, begin, projected, asking, compacted, policy, continues, waiting_below, replaced } = self;
        output.truncate(begin);
        if output.len() != begin {
            return None;
        }
        output.append(&mut prompt.output);
        prompt.output = output;
        if projected > prompt.output.len() {
            return None;
        }
        let is_compacted = compacted.is_some();
        let (sent, standing, from) = compacted.unwrap_or_default();
        Some(Record {
            prompt,
            transcript: Transcript::new(sent),
            projected,
            asking,
            compacted: is_compacted,
            history,
            continues,
            standing,
            from,
            policy,
            waiting_below,
            replaced,
            saved: 0,
            is_saved: false,
            is_in_part: false,
        })
    }
}

#[cfg(test)]
mod tests;
