//! Spans that have ended, as plain data.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{
    Actor, LimitKind, ModelError, Part, Path, ResponseMetadata, RunId, Seq, Status, Timestamp, ToolResult,
};

use serde_json::Value;

use super::ids::{SpanId, SpanRef, TraceId};

/// A worker's uninterrupted work on a run; each is a trace of its own, unless it has a parent in another one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Segment {
    /// The run.
    pub run: RunId,
    /// The number of the worker's claim.
    pub number: u64,
    /// The trace.
    pub trace: TraceId,
    /// Its first span.
    pub root: SpanId,
    /// The span of another system that started the run.
    pub parent: Option<SpanRef>,
    /// The worker.
    pub worker: Option<Arc<str>>,
    /// The title of the run's brain.
    pub brain: Arc<str>,
    /// The run's conversation.
    pub conversation: Option<Arc<str>>,
    /// The user that the run belongs to.
    pub user: Option<Arc<str>>,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// Its segment.
    pub segment: Arc<Segment>,
    /// Its id.
    pub id: SpanId,
    /// The span around it in the same segment; `None` for the first one.
    pub parent: Option<SpanId>,
    /// The path of the event that began it.
    pub path: Path,
    /// The number of the event that began it.
    pub seq: Seq,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// What it is.
    pub operation: Operation,
    /// How it ended.
    pub outcome: Outcome,
    /// Related spans.
    pub links: Vec<Link>,
}

impl Span {
    /// Returns the time from its beginning to its end.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.ended.since(self.started)
    }
}

/// A related span.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Link {
    /// The span.
    pub to: SpanRef,
    /// The relation: `previous_segment`, `forked_from`, `wait` or `signal`.
    pub relation: &'static str,
}

/// How a span ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It came to its end, also to one that is no success of the work, as a limit.
    Done,
    /// The worker released the run before its end, or the work waits: another span continues it.
    Suspended,
    /// It failed, or was ended from outside.
    Failed {
        /// The kind of failure, of few values: the `error.type`.
        error: Cow<'static, str>,
        /// What went wrong. It may quote models and tools.
        message: Option<String>,
    },
}

impl Outcome {
    pub(super) const fn failed(error: &'static str) -> Self {
        Self::Failed { error: Cow::Borrowed(error), message: None }
    }

    pub(super) fn failure(error: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::Failed { error: error.into(), message: Some(message.into()) }
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::Done | Self::Suspended => None,
        }
    }
}

/// What a span is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Operation {
    /// A brain: the run's own, or a nested one.
    Agent(Agent),
    /// A try of a step.
    Step {
        /// Its name.
        name: String,
        /// The try, from 0.
        attempt: u32,
        /// Whether another try follows.
        retried: bool,
    },
    /// A loop.
    Loop {
        /// Its name.
        name: String,
        /// How it ended: `answered`, `exited`, `max_iterations`, `limit`, `stopped`, `failed` or `cancelled`.
        outcome: Option<&'static str>,
    },
    /// An iteration of a loop.
    Iteration {
        /// Its number, from 0.
        number: u32,
    },
    /// A request to a model.
    Chat(Box<Chat>),
    /// A try of a tool.
    Tool(Box<Tool>),
    /// A wait for a person, a webhook or a grant.
    Wait(Box<Wait>),
}

/// A brain.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Agent {
    /// Its title.
    pub title: Arc<str>,
    /// The author's version.
    pub version: u32,
    /// The stage of the surrounding brain that it is.
    pub stage: Option<String>,
    /// The provider of the first model that answered in it.
    pub provider: Option<String>,
    /// How it ended; `None` if another segment continues it.
    pub status: Option<Status>,
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Chat {
    /// The provider, as the adapter names it.
    pub provider: String,
    /// The requested model.
    pub model: String,
    /// The try, from 0.
    pub attempt: u32,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The maximum number of tokens in the answer.
    pub max_tokens: Option<u32>,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// Of a question of a step: its text.
    pub question: Option<String>,
    /// The answer's metadata.
    pub answer: Option<ResponseMetadata>,
    /// What was reported of answers that broke.
    pub broken: Vec<ResponseMetadata>,
    /// The answer's parts.
    pub parts: Option<Arc<[Part]>>,
    /// The time that the worker measured.
    pub measured: Option<Duration>,
    /// The failure.
    pub error: Option<ModelError>,
    /// Whether another request follows.
    pub retried: bool,
}

/// A try of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Tool {
    /// The tool's name, or what the model wrote if there is no such tool.
    pub name: String,
    /// Whether it was started: a name that a model has invented is not.
    pub started: bool,
    /// The provider's id of the call, else its public id.
    pub call: String,
    /// Whether it runs a brain.
    pub brain: bool,
    /// The try, from 0.
    pub attempt: u32,
    /// The arguments that the model proposed.
    pub arguments: Arc<Value>,
    /// The result.
    pub result: Option<ToolResult>,
    /// Whether another try follows.
    pub retried: bool,
}

/// A wait.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Wait {
    /// What it waits for.
    pub kind: WaitKind,
    /// The waiting tool; empty for a budget and a pause.
    pub tool: String,
    /// Of a wait for a webhook: its names.
    pub webhooks: Vec<String>,
    /// Of a budget: the kind of limit.
    pub limit: Option<LimitKind>,
    /// How it ended: `approved`, `rejected`, `answered`, `resumed`, `expired` or `withdrawn`.
    pub verdict: &'static str,
    /// Whether a person edited the arguments.
    pub edited: bool,
    /// Who ended it.
    pub actor: Actor,
    /// The reason of a rejection.
    pub reason: Option<String>,
}

/// The kinds of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WaitKind {
    /// A person's decision on a call.
    Approval,
    /// A webhook.
    Webhook,
    /// A person's reply.
    Reply,
    /// A higher limit.
    Budget,
    /// The end of a pause.
    Pause,
    /// A time.
    Time,
}

impl WaitKind {
    /// Returns its name in spans and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Webhook => "webhook",
            Self::Reply => "reply",
            Self::Budget => "budget",
            Self::Pause => "pause",
            Self::Time => "time",
        }
    }
}
