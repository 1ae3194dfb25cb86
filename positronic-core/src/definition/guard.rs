//! Guards of a loop: checks of messages, answers, calls and results.

use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use serde_json::Value;

use super::Scope;
use crate::error::Result;
use crate::record::{ModelResponse, Path, UserMessage};

/// A guard of a loop.
#[derive(Clone, Debug)]
pub struct LoopGuard {
    /// Its name, for people and the model.
    pub name: String,
    /// What it checks.
    pub check: LoopGuardCheck,
}

/// The check of a guard.
#[derive(Clone)]
#[derive_where(Debug)]
pub enum LoopGuardCheck {
    /// Checks an answer before it is recorded.
    Answer(#[derive_where(skip)] CheckFn<CheckedAnswer>),
    /// Checks a message of a person before the model reads it.
    Input(#[derive_where(skip)] CheckFn<CheckedInput>),
    /// Checks the tool and the arguments of a call, before a person is asked about it.
    Call(#[derive_where(skip)] CheckFn<CheckedValue>),
    /// Checks the tool and the result of a call.
    Result(#[derive_where(skip)] CheckFn<CheckedValue>),
}

impl LoopGuardCheck {
    /// Returns whether it checks messages of people.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Input(_))
    }

    /// Returns whether it checks calls.
    #[must_use]
    pub fn is_call(&self) -> bool {
        matches!(self, Self::Call(_))
    }
}

/// An answer that a guard checks.
#[derive(Debug, Clone)]
pub struct CheckedAnswer {
    /// The answer.
    pub answer: Arc<ModelResponse>,
    /// Where the guard asks models about it.
    pub at: Path,
}

/// A message of a person that a guard checks.
#[derive(Debug, Clone)]
pub struct CheckedInput {
    /// The message.
    pub message: Arc<UserMessage>,
    /// The iteration that would send it, at which the guard asks models.
    pub at: Path,
}

/// The arguments or the output of a call that a guard checks.
#[derive(Debug, Clone)]
pub struct CheckedValue {
    /// The tool.
    pub tool: String,
    /// The arguments or the output.
    pub value: Arc<Value>,
    /// Where the guard asks models about it.
    pub at: Path,
}

/// Checks a value.
pub type CheckFn<T> = Arc<dyn Fn(Scope, T) -> BoxFuture<'static, Result<Verdict>> + Send + Sync>;

/// The verdict of a guard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Verdict {
    /// It passes.
    #[default]
    Pass,
    /// It does not pass, for this reason: the model is asked again, reads that a message was withheld, or the call gets the reason as its error.
    Refuse(String),
    /// This comes in its place: the text of an answer or a message, arguments, or an output.
    Replace(Value),
    /// The loop fails for this reason, with the code `guard`.
    Stop(String),
}
