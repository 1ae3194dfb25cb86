//! What people see of a run, in the order in which it happens: what all bridges translate.

use positronic_core::record::{Citation, Failure, Path, SideOutput, ToolResult};
use serde_json::Value;

/// An item, and the nested brain in which it happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    /// The id of the innermost nested brain; `None` in the run's own brain.
    pub(crate) brain: Option<String>,
    /// Whether it belongs to the dialogue with the person: it happens in the run's own brain, or in one that took the dialogue over.
    pub(crate) in_dialogue: bool,
    pub(crate) item: Item,
}

/// What kind of text streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Answer,
    Reasoning,
}

/// How a nested brain ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BrainOutcome {
    Completed(Value),
    Failed(Failure),
    Cancelled,
}

/// What became of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalOutcome {
    Approved,
    Rejected,
    Expired,
    Withdrawn,
}

impl ApprovalOutcome {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Something that people see.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// A nested brain begins; `call` is the id of the call that runs it.
    BrainStarted {
        id: String,
        title: String,
        call: Option<String>,
    },
    BrainEnded {
        id: String,
        outcome: BrainOutcome,
    },
    StageStarted {
        path: Path,
    },
    StageEnded {
        path: Path,
    },
    /// An iteration of a loop begins.
    IterationStarted,
    TextStarted {
        id: String,
        answer: String,
        kind: TextKind,
    },
    TextDelta {
        id: String,
        text: String,
    },
    TextEnded {
        id: String,
    },
    /// What was sent of an answer is void: it is asked for again.
    Discarded {
        answer: String,
    },
    /// The sources of the text before.
    Sources {
        id: String,
        sources: Vec<Citation>,
    },
    CallStarted {
        id: String,
        answer: String,
        tool: String,
    },
    CallArguments {
        id: String,
        text: String,
    },
    /// The arguments are complete.
    CallReady {
        id: String,
        arguments: Value,
    },
    /// A person has edited the arguments.
    CallEdited {
        id: String,
        arguments: Value,
    },
    CallEnded {
        id: String,
        result: ToolResult,
    },
    /// A person is asked whether the call may run.
    ApprovalRequested {
        question: String,
        call: String,
        reason: String,
    },
    ApprovalClosed {
        question: String,
        call: String,
        outcome: ApprovalOutcome,
        reason: Option<String>,
    },
    /// A call or a stage waits for an answer.
    WaitStarted {
        question: String,
        path: Path,
        prompt: Option<String>,
    },
    WaitEnded {
        /// The id of the event, as of a message.
        id: String,
        question: String,
        path: Path,
        /// The answer, if a person was asked for a text.
        text: Option<String>,
    },
    /// A tool shows something.
    Output {
        id: String,
        call: String,
        output: SideOutput,
    },
    /// The progress of a running tool, live.
    Progress {
        call: String,
        text: String,
    },
    UserMessage {
        id: String,
        text: String,
        /// Whether a loop begins with it.
        is_input: bool,
    },
    /// The public state has changed.
    StateChanged {
        state: Value,
    },
    /// An event without a counterpart in the protocols.
    Notice {
        name: &'static str,
        value: Value,
    },
}

impl Item {
    /// Returns the id and the text of a user's message that begins a turn of a run: one to a loop that works, or the answer to a
    /// question.
    pub(crate) fn turn_message(&self) -> Option<(&str, &str)> {
        match self {
            Self::UserMessage { id, text, is_input: false } | Self::WaitEnded { id, text: Some(text), .. } => {
                Some((id, text))
            }
            _ => None,
        }
    }
}
