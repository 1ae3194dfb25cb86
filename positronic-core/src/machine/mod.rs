//! The pure state machine of a run: the meaning of its log, and what happens next.
//!
//! This module is for readers of a run's state, such as user interfaces and tests; an author of brains does not need it. Its
//! documentation shows the state, what it waits for and why a signal is refused, and leaves out the frames inside.
//!
//! ```text
//! RunState::apply(&event)      folds one event into the state, or refuses it and changes nothing
//! next(&state, now)            returns which effects must be in flight, and when to call it again
//! admit(&state, signal, now)   converts a signal into events, or refuses it
//! settle(&state, outcome, …)  converts the outcome of an effect into events: retry, failure or result
//! why(&state)                  explains why the run waits, since which event, and for whom
//! ```
//!
//! The machine does no I/O, and reads neither clocks nor random numbers: times and ids are part of the events. The
//! [`runner`](crate::runner) performs the effects and appends their outcomes; since `next` depends only on the state,
//! a run resumes from its log.
//!
//! A run is a tree of frames. A `BrainFrame` is at one of its stages; a loop's `LoopFrame` has the calls of the
//! current batch, and a `Call` may have the frame of its nested brain; a `GroupFrame` has those of its open brains. Only open work has a frame.

mod active_frame;
mod active_time;
mod admit;
mod apply;
mod apply_usage;
mod child_end;
mod close;
mod conversation_budget;
mod crash_limit;
mod crashed_work;
mod detached_calls;
mod effect;
mod frame_lookup;
mod frames;
mod grants;
mod limits;
mod model_question;
mod next;
mod retry_point;
mod settle;
mod stages;
mod state;
mod status;
mod summary;
mod tries;
mod undo;
mod waiting;

pub use admit::{Refusal, earlier_decision};
pub use apply::IllegalEvent;
pub use crash_limit::MAX_CRASHES;
pub(crate) use crash_limit::{SUSPECT, parked};
pub use crashed_work::{CrashedWork, Work};
pub use state::{KNOWN_SIGNALS, NotClaimed, RunState};
pub use status::{pending, status};
pub use summary::summary;
pub use waiting::{Waiting, WaitingOn, why};

#[doc(hidden)]
pub use active_frame::ActiveFrame;
#[doc(hidden)]
pub use admit::{SchemaCheck, admit};
#[doc(hidden)]
pub use effect::{Effect, Next};
#[doc(hidden)]
pub use frames::{
    BrainEnd, BrainFrame, Call, CallPhase, GroupFrame, Intent, LoopFrame, LoopPhase, OpenQuestion, OpenUpdate,
    Prepared, RejectedAnswer, Stage, StepFrame, Undoable, Undoing, Values, WaitFrame, WaitOutcome, Winner,
};
#[doc(hidden)]
pub use grants::{Grants, PendingGrant, SharedLimits, Spending};
#[doc(hidden)]
pub use next::next;
#[doc(hidden)]
pub use status::awaits;

pub(crate) use admit::{REPLY, nothing_waits, with_earlier_answer};
pub(crate) use close::end_brain;
pub(crate) use conversation_budget::add_up;
pub(crate) use detached_calls::detached;
pub(crate) use limits::{has_limit_of_money, limits_money};
pub(crate) use model_question::{Asking, ask};
pub(crate) use next::is_due;
pub(crate) use retry_point::{RetryPoint, retry_point};
pub(crate) use settle::{
    Answered, ConfiguredIteration, GroupBegun, Outcome, Overdue, RefusingGuard, Replaced, Returned, SettleContext,
    StateChanges, Validated, Veto, begin_iteration, begin_loop, offers, plugin_steps, plugin_updated, settle,
};
pub(crate) use stages::{OPENING, given_up};
pub(crate) use status::{keeps_values, waits_since};
pub(crate) use summary::{add_events, hears_mail, status_since};
pub(crate) use undo::undo_by_hand;
