//! The record of one loop: what was put in, everything that came out, in order.
//!
//! The outputs are a superset of what a model knows: text and tool calls, and also files and widgets that only
//! people see. [`projection`](crate::projection) makes model messages from them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::Approval;
use super::call::{CallFlags, CallState};
use super::ids::{PublicId, Timestamp};
use super::path::Path;
use super::price::Charge;
use super::request::Tier;
use super::result::{LoopOutcome, ToolResult};
use super::usage::{Part, Usage};

/// The record of one loop. As JSON it loses nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// Its id: unique within its conversation, where the run is known of which it is folded, as it is for everything that a
    /// runner or a client returns; else unique within its run.
    pub id: PublicId,
    /// The loop's path.
    pub path: Path,
    /// Whom the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Which of the runner's models answers.
    #[serde(default)]
    pub model: Tier,
    /// Whether people are shown it. One that they are not shown is history for the model all the same.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub visible: bool,
    /// Where the loop stands.
    pub state: PromptState,
    /// The opening message; a loop without one was started by the system, whose message is the first output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Everything that happened, in order.
    pub output: Vec<Output>,
    /// The tokens of all model calls of this loop, nested brains not included.
    pub usage: Usage,
    /// How the loop ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<LoopOutcome>,
}

impl Prompt {
    /// Returns the final text of the loop: that of its last answer that says something. `None` while the loop runs, after a
    /// failure or a cancellation, and where the model said nothing.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        match &self.outcome {
            None | Some(LoopOutcome::Failed { .. } | LoopOutcome::Cancelled) => None,
            Some(_) => {
                self.output.iter().rev().filter_map(|output| output.kind.text()).find(|text| !text.trim().is_empty())
            }
        }
    }

    /// Lists the outputs as a user interface shows them: where a widget has taken the place of another output of this
    /// loop, it stands there alone. The record itself keeps both. [`shown_together`] does so over all loops of a run.
    #[must_use]
    pub fn shown(&self) -> Vec<&Output> {
        shown_together([self]).pop().unwrap_or_default()
    }
}

/// Lists the outputs of loops of one run as a user interface shows them, a list for each: where a widget has taken the place
/// of another output, of its loop or of another one, it stands there alone.
///
/// An id names an output of one run. So a widget takes the place of none of an earlier prompt of a conversation, which is
/// what people have read.
#[must_use]
pub fn shown_together<'a>(prompts: impl IntoIterator<Item = &'a Prompt>) -> Vec<Vec<&'a Output>> {
    let prompts: Vec<_> = prompts.into_iter().collect();
    let mut places: HashMap<&PublicId, Place> = HashMap::new();
    let mut replaced: HashMap<&PublicId, &PublicId> = HashMap::new();
    for (prompt, outputs) in prompts.iter().map(|prompt| &prompt.output).enumerate() {
        for (index, output) in outputs.iter().enumerate() {
            let Some(id) = &output.id else { continue };
            places.insert(id, Place { prompt, index });
            if let Some(old) = output.kind.replaces() {
                replaced.insert(id, old);
            }
        }
    }
    let mut shown: Vec<Vec<Option<&Output>>> =
        prompts.iter().map(|prompt| prompt.output.iter().map(Some).collect()).collect();
    let mut newer = Vec::new();
    for output in prompts.iter().flat_map(|prompt| &prompt.output) {
        let Some((id, own)) = output.id.as_ref().and_then(|id| Some((id, *places.get(id)?))) else { continue };
        let (mut first, mut steps) = (id, 0);
        while let Some(older) = replaced.get(first).filter(|older| places.contains_key(**older)) {
            (first, steps) = (older, steps + 1);
            if steps > replaced.len() {
                break;
            }
        }
        if let Some(place) = places.get(first).filter(|place| **place != own) {
            own.put(&mut shown, None);
            newer.push((output.at, steps, *place, output));
        }
    }
    newer.sort_by_key(|(at, steps, ..)| (*at, *steps));
    for (_, _, place, output) in newer {
        place.put(&mut shown, Some(output));
    }
    shown.into_iter().map(|outputs| outputs.into_iter().flatten().collect()).collect()
}

/// Where an output stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    prompt: usize,
    index: usize,
}

impl Place {
    fn put<'a>(self, shown: &mut [Vec<Option<&'a Output>>], output: Option<&'a Output>) {
        if let Some(slot) = shown.get_mut(self.prompt).and_then(|outputs| outputs.get_mut(self.index)) {
            *slot = output;
        }
    }
}

/// Where a loop stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptState {
    /// It works.
    Running,
    /// A call waits for a person's approval, or a brain that a call runs does.
    WaitingForApproval,
    /// A call waits for a webhook or a reply, or a brain that a call runs does.
    WaitingForWebhook,
    /// It has ended.
    Completed,
}

/// One entry of a loop's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// When it happened.
    pub at: Timestamp,
    /// How long it took, in microseconds: a model's answer from its request on, a call from its tool's start on. None
    /// for what takes no time, and for what is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// The id of what a call shows beside its result, by which a widget can take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<PublicId>,
    /// What it is.
    #[serde(rename = "output")]
    pub kind: OutputKind,
}

/// The kinds of entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputKind {
    /// A message that came in while the loop ran.
    Message {
        /// What was said.
        text: String,
        /// Whether the engine said it, rather than a person.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        engine: bool,
    },
    /// What the model said, apart from its calls.
    Text {
        /// The iteration.
        iteration: u32,
        /// The parts in order; a call's place is a reference.
        parts: Arc<[Part]>,
        /// What the answer cost when it came; `None` where nothing is known of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Box<Charge>>,
    },
    /// A call.
    Tool(Box<ToolOutput>),
    /// A file for people; the model reads one line about it.
    File(Box<FileOutput>),
    /// Data for a user interface; the model never sees it.
    Widget(Box<WidgetOutput>),
    /// An output of a type that an application adds.
    Custom(Box<CustomOutput>),
}

/// What a call shows to people beside its result. In the record it stands right behind the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SideOutput {
    /// A file.
    File(FileOutput),
    /// A widget.
    Widget(WidgetOutput),
    /// An output of a type that an application adds.
    Custom(CustomOutput),
}

impl SideOutput {
    /// Returns it as an entry of a record.
    #[must_use]
    pub fn kind(&self) -> OutputKind {
        match self.clone() {
            Self::File(file) => OutputKind::File(Box::new(file)),
            Self::Widget(widget) => OutputKind::Widget(Box::new(widget)),
            Self::Custom(custom) => OutputKind::Custom(Box::new(custom)),
        }
    }
}

impl OutputKind {
    /// Returns the output whose place it takes.
    fn replaces(&self) -> Option<&PublicId> {
        match self {
            Self::Widget(widget) => widget.replaces.as_ref(),
            _ => None,
        }
    }

    /// Returns what the model said in words, if that is what the entry is.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let Self::Text { parts, .. } = self else { return None };
        let words = parts.iter().filter_map(|part| match part {
            Part::Text { text } | Part::Refusal { text } => Some(text.as_str()),
            _ => None,
        });
        Some(words.collect())
    }

    /// Says whether it stands behind a call.
    #[must_use]
    pub const fn is_aside(&self) -> bool {
        matches!(self, Self::File(_) | Self::Widget(_) | Self::Custom(_))
    }
}

/// A call, with its result once there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The call's path.
    pub path: Path,
    /// The call's public id, by which people and bridges address it; unique within its run.
    pub public_id: PublicId,
    /// The tool, or the name that the model wrote where there is no such tool.
    pub tool: String,
    /// The arguments that the model proposed.
    pub arguments: Arc<Value>,
    /// The arguments that ran, where a person edited them.
    #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
    pub edited: Option<Value>,
    /// Where the call stands.
    pub state: CallState,
    /// What the tool promises.
    #[serde(default, skip_serializing_if = "CallFlags::is_plain")]
    pub flags: CallFlags,
    /// The approval that it needs: the question, and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// The provider's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// What the provider wants back unchanged.
    #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// How many bytes a file may have that is kept with the runs: 32 MiB. It is kept whole in one commit, and read whole into
/// memory; what is larger belongs elsewhere, with its address in the record.
pub const LARGEST_BLOB: usize = 32 << 20;

/// A file that a tool made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOutput {
    /// The file's name.
    pub name: String,
    /// Its media type, such as `text/markdown`.
    pub media_type: String,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// Where its bytes are: `blob:` and the hash where the event store keeps them, or wherever the tool says.
    pub uri: String,
}

impl FileOutput {
    /// Describes a file whose bytes the event store keeps under their hash.
    pub fn kept(name: impl Into<String>, media_type: impl Into<String>, size: u64, sha256: impl Into<String>) -> Self {
        let sha256 = sha256.into();
        Self { name: name.into(), media_type: media_type.into(), size, uri: format!("blob:{sha256}"), sha256 }
    }

    /// Returns the hash under which the event store keeps the bytes; none where they are elsewhere.
    #[must_use]
    pub fn blob(&self) -> Option<&str> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        // A browser's `blob:https://…` is another thing.
        self.uri.strip_prefix("blob:").filter(|hash| hash.len() == 64 && hash.bytes().all(is_digit))
    }
}

/// Data for a user interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WidgetOutput {
    /// Which widget shows the data.
    pub kind: String,
    /// The data.
    pub data: Value,
    /// What is shown where there is no such widget.
    pub fallback: String,
    /// The output that this one takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<PublicId>,
}

/// An output of a type that an application adds: the engine records, shows and projects it without knowing the type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomOutput {
    /// The name of the type.
    pub kind: String,
    /// The value.
    pub data: Value,
    /// What is shown where the type is not known.
    pub fallback: String,
    /// What the model reads of it, in the tool message of its call; nothing where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_text: Option<String>,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_yes(value: &bool) -> bool {
    *value
}
