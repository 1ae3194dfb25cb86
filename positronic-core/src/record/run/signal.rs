//! Signals: input to a run from outside.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actor::Actor;
use super::budget::{Amounts, Budget, SharedBudget};
use super::child::{ChildEnd, ParentRun};
use super::scheduled::Scheduled;
use super::trigger::Fired;
use super::webhook_delivery::WebhookDelivery;
use crate::record::encoding::document;
use crate::record::encoding::skip::is_default;
use crate::record::ids::{RunId, SignalId};
use crate::record::path::Path;
use crate::record::prompt::caller_tool::CallerTool;
use crate::record::prompt::file::FileRef;

/// Starts a run. It is recorded in the run's first `BRAIN_START`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// The start's id, which becomes the run's: the same id starts the same run. A start with the same id that differs in
    /// anything but its actor is refused, with the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<SignalId>,
    /// The user that the run belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Words that lists of runs are filtered by: at most 16, each of 1 to 64 bytes without control characters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The sender, and the channel.
    #[serde(skip_serializing_if = "is_default")]
    pub actor: Actor,
    /// The conversation of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The previous run in the conversation; its prompts and those before are the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
    /// The message that opens the first loop of the run's brain, in place of the loop's own input. A brain without a loop refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<UserMessage>,
    /// The trigger that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired: Option<Fired>,
    /// The tick of a schedule that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Scheduled>,
    /// The delivery of a webhook that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<WebhookDelivery>,
    /// The run that has started it as its child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ParentRun>>,
    /// The budget of the run: each limit that is set here overrides the brain author's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The budget of all prompts of its conversation, in addition to the run's own: whichever is
    /// used up first applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_budget: Option<SharedBudget>,
    /// The run and the event number it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<(RunId, crate::record::ids::Seq)>,
    /// The event numbers at which earlier forks of what it shares begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_forks: Vec<crate::record::ids::Seq>,
    /// Overrides of the brain's code.
    #[serde(skip_serializing_if = "is_default")]
    pub overrides: Overrides,
}

impl Start {
    /// Returns whether the event with this number is the first one of a fork itself: of the run, or of an earlier fork that it shares. There
    /// deadlines move.
    pub(crate) fn begins_fork(&self, seq: crate::record::ids::Seq) -> bool {
        self.forked_from.as_ref().is_some_and(|(_, at)| at.next() == seq) || self.earlier_forks.contains(&seq)
    }
}

/// A message of a user: a text, files, or both.
///
/// Where a method takes `impl Into<UserMessage>`, a text is enough.
///
/// ```
/// use positronic_core::record::{FileRef, UserMessage};
///
/// let question = UserMessage::new("Which bird is it?")
///     .file(FileRef::url("https://example.org/bird.jpg", "image/jpeg"));
/// assert_eq!(question.files.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UserMessage {
    /// The text.
    pub text: String,
    /// The sender's id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The files, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// The sender's own tools from this message on, in place of those that it has given before; `None` leaves them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_tools: Option<Vec<CallerTool>>,
}

impl UserMessage {
    /// Creates a message with a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the sender's id of the message.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, file: FileRef) -> Self {
        self.files.push(file);
        self
    }

    /// Adds files.
    #[must_use]
    pub fn files(mut self, files: impl IntoIterator<Item = FileRef>) -> Self {
        self.files.extend(files);
        self
    }

    /// Gives the loop that takes the message tools of its sender, who answers their calls. The author of the loop opts in with
    /// [`caller_tools`](crate::dsl::BrainBuilder::caller_tools). They hold until another message of the run gives others.
    #[must_use]
    pub fn caller_tools(mut self, tools: impl IntoIterator<Item = CallerTool>) -> Self {
        self.caller_tools = Some(tools.into_iter().collect());
        self
    }

    /// Returns whether it has neither a visible character nor a file; no provider accepts such a message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.files.is_empty()
    }
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Overrides of a brain's code in a run, for experiments in a fork. They apply to every loop, from
/// its next iteration on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Input to an existing run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// The signal's id. Sending the same id again has no further effect.
    pub id: SignalId,
    /// The sender and the channel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub actor: Actor,
    /// The kind of signal.
    pub kind: SignalKind,
}

/// The kinds of signals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SignalKind {
    /// Approves a pending call, with its own or edited arguments.
    Approve {
        /// The call's path.
        call: Path,
        /// The edited arguments, if any.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// Grants more to a loop or a brain that has reached a limit and asks for it.
    Grant {
        /// The loop's or the brain's path; empty for the run's own brain.
        to: Path,
        /// The granted amounts.
        more: Amounts,
    },
    /// Rejects a pending call, or a request of a loop or a brain for more.
    Reject {
        /// The path of the call, the loop or the brain.
        call: Path,
        /// The reason; for a call, the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Delivers a webhook's payload to the call that waits for it.
    Webhook {
        /// The webhook's name.
        name: String,
        /// Distinguishes this wait from others for the same webhook.
        identifier: String,
        /// The payload, checked against the webhook's schema.
        payload: Value,
    },
    /// Replies to a call that waits for a reply to itself.
    Reply {
        /// The call's path.
        call: Path,
        /// The reply.
        payload: Value,
    },
    /// Sends a message to a loop of the run.
    Message {
        /// The loop; required if several are open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Path>,
        /// The text.
        text: String,
        /// The sender's id of the message, which may differ from the signal's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// The sender's own tools from this message on; `None` leaves those that it has given before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_tools: Option<Vec<CallerTool>>,
    },
    /// Updates the state of a plugin. The plugin's code takes the update before its loop's next iteration, or before the loop ends.
    UpdatePlugin {
        /// The loop; required if several open loops have the plugin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Path>,
        /// The plugin's name in the log, with that of the instance before it if it has one: `work.notes`.
        plugin: String,
        /// The update, as JSON.
        update: Value,
    },
    /// Reports the end of a child run. The engine sends it when the child ends.
    ChildEnded {
        /// The child.
        child: RunId,
        /// How it has ended.
        end: ChildEnd,
    },
    /// Pauses the run: no new work starts, and work in flight completes.
    Pause,
    /// Resumes after a pause.
    Resume,
    /// Ends the run; every open call gets a typed result.
    Cancel {
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl SignalKind {
    /// Creates a message to the open loop of the run.
    pub fn message(message: impl Into<UserMessage>) -> Self {
        let UserMessage { text, id, files, caller_tools } = message.into();
        Self::Message { to: None, text, message_id: id, files, caller_tools }
    }
}

/// Extra data under names, in the order they were added.
pub(crate) type Named = IndexMap<String, Value>;
