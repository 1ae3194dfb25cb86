//! The nodes of a timeline.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::detail::{AnswerNode, BrainNode, BudgetNode, CallNode, GuardedValue, StageNode, WidgetNode};
use crate::record::encoding::skip::is_default;
use crate::record::{
    Actor, AnswerFault, ChildRun, ClaimRefusal, CustomOutput, Failure, FileRef, LimitReached, Path, PublicId, Seq,
    Speaker, Timestamp, TriggerChange,
};

/// The id of a node in a timeline: its position in the order in which events begin nodes. The same log gives the same
/// ids in every process, and later events do not change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The root brain.
    pub const ROOT: Self = Self(0);

    pub(super) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A place or an occurrence in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Node {
    /// Its id in this timeline.
    pub id: NodeId,
    /// The node around it; `None` for the root brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<NodeId>,
    /// The path of the event that began it. Together with `seq` it names the node across timelines.
    pub path: Path,
    /// The number of the event that began it; for a stage that has not begun, of its brain's start.
    pub seq: Seq,
    /// Its status.
    pub status: NodeStatus,
    /// When it began; `None` for a stage or a call that has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Its content.
    pub kind: NodeKind,
    #[serde(skip)]
    pub(super) children: Vec<NodeId>,
}

impl Node {
    /// Returns the nodes below it, in the order in which they began.
    #[must_use]
    pub fn children(&self) -> &[NodeId] {
        &self.children
    }
}

/// The status of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeStatus {
    /// It has not begun.
    NotStarted,
    /// It is running.
    Running,
    /// It waits for a person, a webhook or a grant.
    Waiting,
    /// It succeeded.
    Done,
    /// It failed, or was denied.
    Failed,
    /// It was ended from outside, or its outcome is unknown.
    Interrupted,
    /// A limit or an unusable answer ended it.
    Limited,
    /// It was never started.
    Skipped,
}

impl NodeStatus {
    /// Returns whether the node has not ended.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::NotStarted | Self::Running | Self::Waiting)
    }
}

/// The kind of a node, with its content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeKind {
    /// The run's own brain.
    Brain(BrainNode),
    /// A stage of a brain.
    Stage(Box<StageNode>),
    /// An iteration of a loop.
    Iteration {
        /// Its number, from 0.
        number: u32,
    },
    /// A request to a model and its outcome: of an iteration, or a question of a step or a plugin. A retry is a
    /// node of its own.
    Answer(Box<AnswerNode>),
    /// A call of a tool, or of a brain.
    Call(Box<CallNode>),
    /// A step or a tool failed and is tried again.
    Retry {
        /// The attempt that failed, from 0.
        attempt: u32,
        /// What went wrong.
        message: String,
        /// When it is tried again.
        due: Timestamp,
    },
    /// A message to a loop.
    Message {
        /// The text.
        text: String,
        /// The files.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// The sender.
        from: Speaker,
        /// Whether it opens the loop.
        #[serde(skip_serializing_if = "is_default")]
        opening: bool,
        /// The sender's own id of the message.
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The person who sent it, and the channel.
        actor: Actor,
    },
    /// A file that a tool created or loaded.
    File {
        /// The output's public id.
        public_id: PublicId,
        /// The file.
        file: FileRef,
        /// Whether the model gets the contents, and not only a line about the file.
        #[serde(skip_serializing_if = "is_default")]
        content: bool,
    },
    /// A widget that a tool shows.
    Widget(Box<WidgetNode>),
    /// An output of an application's own type.
    Custom {
        /// The output's public id.
        public_id: PublicId,
        /// The output.
        output: CustomOutput,
    },
    /// A limit ended a loop.
    Limit(LimitReached),
    /// A request for more of a limit. Its path is that of the loop or brain with the limit.
    Budget(Box<BudgetNode>),
    /// A step called a model beyond a limit, and reruns after a grant.
    Blocked,
    /// A guard replaced an answer, a message of a person, or the arguments or the result of a call.
    GuardReplaced {
        /// The guard.
        guard: String,
        /// What it replaced.
        what: GuardedValue,
        /// The value that it replaced.
        replaced: Value,
    },
    /// An unusable answer ended a loop.
    Stopped {
        /// The fault of the answer.
        cause: AnswerFault,
        /// The author's or the engine's message about it.
        message: String,
    },
    /// Earlier messages were summarised for the model, or are sent in full again.
    Compaction {
        /// How many of the latest messages stay.
        keep: u64,
        /// The summary; `None` if all messages are sent again.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// A plugin failed, and the loop continues without it.
    PluginFailure {
        /// The plugin.
        plugin: String,
        /// What went wrong.
        message: String,
    },
    /// An application updates the state of a plugin. It runs until the plugin has taken the update, and has failed if the plugin has refused it.
    PluginUpdate {
        /// The plugin.
        plugin: String,
        /// The update, as the plugin's code understands it.
        update: Arc<Value>,
        /// Who sent it.
        actor: Actor,
        /// Why the plugin has refused it.
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// A tool set or deleted a trigger.
    Trigger {
        /// The change.
        change: TriggerChange,
    },
    /// A step or a tool started a child run.
    ChildRun(ChildRun),
    /// A pause of the run.
    Pause {
        /// Who paused it.
        actor: Actor,
        /// Why the engine parked it; `None` if a person paused it.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        /// Who resumed it; `None` while it is paused.
        #[serde(skip_serializing_if = "Option::is_none")]
        resumed: Option<Actor>,
    },
    /// The run continues with another version of its brain.
    Migration {
        /// The version.
        version: u32,
    },
    /// A worker could not claim the run.
    ClaimRefused {
        /// The worker.
        owner: String,
        /// The reason.
        reason: ClaimRefusal,
        /// The worker's message about it.
        message: String,
    },
}
