//! The guards of a loop, in order of registration: each sees what the one before has left.

pub(super) mod answers;
pub(in crate::runner) mod applicable;
mod calls;
pub(super) mod inputs;
mod verdict;

pub(super) use self::calls::{check_call, check_result};
pub(super) use self::verdict::{Refused, apply};
use crate::error::Error;
use crate::machine::Replaced;

/// What guards make of the messages for an iteration.
pub(in crate::runner) struct CheckedInputs {
    /// What comes in the place of messages that do not pass.
    pub(super) replaced: Vec<Replaced>,
    /// Why a guard stops the loop.
    pub(super) stopped: Option<Error>,
}
