//! The record of a loop: its input and all of its outputs, in order.
//!
//! The outputs contain more than the model sees: text and tool calls, and also files and widgets that only
//! people see. [`projection`](crate::projection) makes model messages from them.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer_without_text::AnswerWithoutText;
use super::file::FileRef;
use super::made_by::MadeBy;
use super::part::Part;
use super::recorded_call::ToolOutput;
use super::side_output::{CustomOutput, FileOutput, SideOutput, WidgetOutput};
use crate::record::encoding::skip::{is_default, is_true, yes};
use crate::record::event::result::LoopOutcome;
use crate::record::ids::{PublicId, Timestamp};
use crate::record::money::Charge;
use crate::record::path::Path;
use crate::record::request::model_response::Usage;
use crate::record::request::request::Tier;

/// The record of a loop. Its JSON form is lossless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// Its id: unique within its conversation, where the run is known of which it is folded, as it is for everything that a
    /// runner or a client returns; else unique within its run.
    pub id: PublicId,
    /// The loop's path.
    pub path: Path,
    /// The user that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The tier of the model.
    #[serde(default)]
    pub model: Tier,
    /// Whether people see it. A hidden one is still history for the model.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub visible: bool,
    /// The state of the loop.
    pub state: PromptState,
    /// The opening message; if absent, the first output is the engine's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The files of the opening message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// Everything that happened, in order.
    pub output: Vec<Output>,
    /// The tokens of all model calls of this loop, without nested brains.
    pub usage: Usage,
    /// What these calls have cost, by the runner's prices at that time or as reported by the provider. Answers of unknown cost are left out;
    /// `None` if the cost of all is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Charge>,
    /// How the loop ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<LoopOutcome>,
}

impl Prompt {
    /// Returns the final text of the loop: that of its last answer with text. `None` while the loop runs, after a
    /// failure or a cancellation, and if the model wrote no text.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        match &self.outcome {
            None | Some(LoopOutcome::Failed { .. } | LoopOutcome::Cancelled) => None,
            Some(_) => {
                self.output.iter().rev().filter_map(|output| output.kind.text()).find(|text| !text.trim().is_empty())
            }
        }
    }
}

/// The state of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptState {
    /// It is running.
    Running,
    /// A call waits for a person's approval, or a brain that a call runs does.
    WaitingForApproval,
    /// A call waits for a webhook or a reply, or a brain that a call runs does.
    WaitingForWebhook,
    /// It has ended.
    Completed,
}

/// An entry of a loop's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// When it happened.
    pub at: Timestamp,
    /// Its duration, stored in microseconds: of a model's answer from its request, of a call from its tool's start. `None`
    /// for instant and for unfinished ones.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub duration: Option<Duration>,
    /// The id of a side output, with which a widget can replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<PublicId>,
    /// The kind of entry.
    #[serde(rename = "output")]
    pub kind: OutputKind,
}

/// The kinds of entries in a loop's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputKind {
    /// A message that arrived while the loop ran.
    Message {
        /// The text.
        text: String,
        /// Whether the engine sent it, and not a person.
        #[serde(default, skip_serializing_if = "is_default")]
        engine: bool,
        /// Its files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
    },
    /// The model's answer, apart from its calls. An answer of calls without text has none: its first call contains
    /// the rest of it ([`ToolOutput::answer`]).
    Text {
        /// The iteration.
        iteration: u32,
        /// The parts in order, with references to calls.
        parts: Arc<[Part]>,
        /// What the answer cost when it came; `None` where nothing is known of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Box<Charge>>,
        /// The model that gave it.
        #[serde(default, skip_serializing_if = "MadeBy::is_unknown")]
        by: MadeBy,
    },
    /// A call.
    Tool(Box<ToolOutput>),
    /// A file of a call, for people; the model reads one line about it, or gets its contents.
    File(Box<FileOutput>),
    /// Data for a user interface; the model does not see it.
    Widget(Box<WidgetOutput>),
    /// An output of a type that an application adds.
    Custom(Box<CustomOutput>),
}

impl SideOutput {
    /// Converts to an entry of a record.
    #[must_use]
    pub fn kind(&self) -> OutputKind {
        match self.clone() {
            Self::File(file) => OutputKind::File(Box::new(file)),
            Self::Widget(widget) => OutputKind::Widget(Box::new(widget)),
            Self::Custom(custom) => OutputKind::Custom(Box::new(custom)),
        }
    }
}

impl Output {
    /// Takes the answer out of a text's entry; `None` if it contains something that people read.
    pub(crate) fn answer_without_text(&self) -> Option<AnswerWithoutText> {
        let OutputKind::Text { iteration, parts, cost, by } = &self.kind else { return None };
        let (iteration, parts, cost, by) = (*iteration, Arc::clone(parts), cost.clone(), by.clone());
        let is_silent = !parts.iter().any(Part::is_for_people);
        is_silent.then_some(AnswerWithoutText { iteration, parts, cost, by, duration: self.duration })
    }
}

impl OutputKind {
    /// Returns the parts of the model's answer that begins with this entry: a text, or the first call of an answer
    /// without text.
    #[must_use]
    pub fn parts(&self) -> Option<&Arc<[Part]>> {
        match self {
            Self::Text { parts, .. } => Some(parts),
            Self::Tool(call) => call.answer.as_ref().map(|answer| &answer.parts),
            _ => None,
        }
    }

    /// Returns the model that gave the answer that begins with this entry.
    #[must_use]
    pub fn made_by(&self) -> Option<&MadeBy> {
        match self {
            Self::Text { by, .. } => Some(by),
            Self::Tool(call) => call.answer.as_ref().map(|answer| &answer.by),
            _ => None,
        }
    }

    /// Returns what the answer that begins with this entry cost, if that is known.
    #[must_use]
    pub fn cost(&self) -> Option<&Charge> {
        match self {
            Self::Text { cost, .. } => cost.as_deref(),
            Self::Tool(call) => call.answer.as_ref()?.cost.as_deref(),
            _ => None,
        }
    }

    /// Returns the model's text, if the entry is an answer with one.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let Self::Text { parts, .. } = self else { return None };
        let words = parts.iter().filter_map(|part| match part {
            Part::Text { text } | Part::Refusal { text } => Some(text.as_str()),
            _ => None,
        });
        Some(words.collect())
    }

    /// Returns whether it is a side output of a call.
    #[must_use]
    pub const fn is_aside(&self) -> bool {
        matches!(self, Self::File(_) | Self::Widget(_) | Self::Custom(_))
    }
}
