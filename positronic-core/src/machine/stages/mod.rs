//! The kinds of stages: what each does with its events, and what it needs next.
//!
//! A new kind is a variant of [`StageKind`](crate::record::StageKind) and of [`Stage`](super::Stage), a file here that
//! implements [`Kind`] and [`Frame`], and its lines in `table`, without which nothing compiles. The rest of the machine calls
//! the two traits.

mod brain;
mod branch;
mod fork_deadlines;
mod frame;
mod group;
mod guard;
mod r#loop;
mod repeat;
mod step;
mod table;
mod wait;

pub(super) use fork_deadlines::postpone_in_fork;
pub(super) use frame::{Advance, Frame, OwnerState, Reason};
pub(super) use r#loop::{CONTINUE, FORGOTTEN, denial, denied_before};
pub(crate) use r#loop::{OPENING, given_up};
pub(super) use step::question_hash;
