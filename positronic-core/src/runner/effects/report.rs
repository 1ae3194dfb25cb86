//! Reports of running effects to the worker.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};

use super::guards::CheckedInputs;
use super::plugin_hooks::PreparedIteration;
use crate::definition::UntypedReply;
use crate::error::Result;
use crate::machine::{Outcome, Replaced};
use crate::record::{ChildRun, ModelError, ModelRequest, ModelResponse, Path, PublicId, Question, SideOutput};

/// The channel to the worker. A report is boxed, because the channel allocates room for 32 at once.
pub(in crate::runner) type Reports = mpsc::UnboundedSender<Box<Report>>;

/// The permission to ask or compute next, for work in sequence. It is part of the report, so it lasts until the
/// worker is done even if the caller has given up.
pub(super) type SequenceTurn = OwnedMutexGuard<()>;

/// A report to the worker.
pub(in crate::runner) enum Report {
    /// A tool created a file or a widget.
    Output { path: Path, id: PublicId, output: SideOutput },
    /// A step, a plugin or a guard asks a model.
    Question {
        path: Path,
        question: Question,
        reply: oneshot::Sender<Result<ModelResponse>>,
        turn: Option<SequenceTurn>,
    },
    /// A step or a tool has computed a value to record.
    Value {
        path: Path,
        name: String,
        value: Arc<Value>,
        reply: oneshot::Sender<Result<Arc<Value>>>,
        turn: SequenceTurn,
    },
    /// A step or a tool is about to start a child run.
    Child { path: Path, child: ChildRun, reply: oneshot::Sender<Result<()>> },
    /// An effect has ended.
    Done { path: Path, outcome: EffectOutcome },
}

impl Report {
    pub(in crate::runner) const fn path(&self) -> &Path {
        match self {
            Self::Output { path, .. }
            | Self::Question { path, .. }
            | Self::Value { path, .. }
            | Self::Child { path, .. }
            | Self::Done { path, .. } => path,
        }
    }
}

/// The outcome of an effect.
pub(in crate::runner) enum EffectOutcome {
    Prepared {
        result: Result<Box<PreparedIteration>>,
        iteration: u32,
        read: usize,
    },
    /// Guards have replaced messages for an iteration, or stop the loop.
    Inputs {
        inputs: CheckedInputs,
        iteration: u32,
        read: usize,
    },
    /// A step or a model call has ended with what the machine needs to know, after so much time.
    Settled(Outcome, Duration),
    Tool {
        result: Result<UntypedReply>,
        replaced: Vec<Replaced>,
        attempt: u32,
        took: Duration,
    },
    /// The arguments of a call that runs a brain, which a person has edited, are checked.
    Edited {
        result: Result<()>,
    },
    Question {
        result: Result<ModelResponse, ModelError>,
        took: Duration,
        asker: Box<Asker>,
    },
}

/// A question that was sent, and where its answer goes.
pub(in crate::runner) struct Asker {
    /// The step or the iteration that asks.
    pub(super) asks: Path,
    pub(super) request: ModelRequest,
    pub(super) reply: oneshot::Sender<Result<ModelResponse>>,
    pub(super) turn: Option<SequenceTurn>,
}
